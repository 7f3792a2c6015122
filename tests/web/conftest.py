"""The page, asked by a client of our own and by a real Chromium.

    pytest tests/web                      every test
    pytest tests/web --binary PATH        another build, for instance with sanitizers
"""
import os
import shutil
import tempfile
from pathlib import Path

import pytest

from house import House

TOP = Path(__file__).resolve().parents[2]


def pytest_addoption(parser):
    parser.addoption('--binary', default=str(TOP / 'build/fumehood'))


def pytest_configure(config):
    config.addinivalue_line('markers', 'long: only in make test-all')


@pytest.fixture(scope='session')
def binary(request):
    """The command, where every user can reach it."""
    directory = Path(tempfile.mkdtemp(prefix='fumehood-web-', dir='/var/tmp'))
    directory.chmod(0o755)
    shutil.copy(request.config.getoption('--binary'), directory / 'fumehood')
    yield directory / 'fumehood'
    shutil.rmtree(directory)


@pytest.fixture(scope='module')
def house(binary):
    """A ledger of its own, with what strangers leave in one."""
    directory = Path(tempfile.mkdtemp(prefix='fumehood-web-', dir='/var/tmp'))
    made = House(binary, directory)
    try:
        made.fill()
        yield made
    finally:
        made.close()
        shutil.rmtree(directory)


@pytest.fixture(scope='module')
def page(house):
    return house.serve()
