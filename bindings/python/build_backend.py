"""A PEP 517 and PEP 660 backend for one package of pure Python: it copies files into an archive, and needs nothing that has to be
downloaded first.
"""
import base64
import hashlib
import io
import re
import tarfile
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
NAME = "fumehood"
_TEXT = (HERE / "pyproject.toml").read_text()


def _field(name):
    return re.search(rf'^{name} = "(.*)"$', _TEXT, re.M).group(1)


def _version():
    """Meson's of the source tree that this lies in; of a source distribution, the one that it was given."""
    if (HERE / "PKG-INFO").exists():
        return re.search(r"^Version: (.*)$", (HERE / "PKG-INFO").read_text(), re.M).group(1)
    return re.search(r"^project\(.*\bversion: '([^']+)'", (HERE / "../../meson.build").read_text(), re.M).group(1)


VERSION = _version()
_METADATA = f"""Metadata-Version: 2.1
Name: {NAME}
Version: {VERSION}
Summary: {_field("description")}
License: Apache-2.0
Requires-Python: {_field("requires-python")}
Description-Content-Type: text/markdown

{(HERE / "README.md").read_text()}"""
_WHEEL = "Wheel-Version: 1.0\nGenerator: fumehood\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def _sources():
    return sorted(path for path in (HERE / NAME).rglob("*") if path.suffix == ".py" or path.name == "py.typed")


def _write_wheel(directory, files):
    info, records = f"{NAME}-{VERSION}.dist-info", []
    files = {**files, f"{info}/METADATA": _METADATA.encode(), f"{info}/WHEEL": _WHEEL.encode()}
    wheel = f"{NAME}-{VERSION}-py3-none-any.whl"
    with zipfile.ZipFile(Path(directory) / wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            records.append(f"{name},sha256={digest},{len(content)}\n")
            archive.writestr(zipfile.ZipInfo(name), content)
        archive.writestr(zipfile.ZipInfo(f"{info}/RECORD"), "".join(records) + f"{info}/RECORD,,\n")
    return wheel


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    return _write_wheel(wheel_directory, {str(path.relative_to(HERE)): path.read_bytes() for path in _sources()})


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    return _write_wheel(wheel_directory, {f"{NAME}.pth": f"{HERE}\n".encode()})


def build_sdist(sdist_directory, config_settings=None):
    top, sdist = f"{NAME}-{VERSION}", f"{NAME}-{VERSION}.tar.gz"
    with tarfile.open(Path(sdist_directory) / sdist, "w:gz", format=tarfile.PAX_FORMAT) as archive:
        for path in [HERE / "pyproject.toml", HERE / "README.md", HERE / "build_backend.py", *_sources()]:
            archive.add(path, f"{top}/{path.relative_to(HERE)}")
        info = tarfile.TarInfo(f"{top}/PKG-INFO")
        info.size = len(_METADATA.encode())
        archive.addfile(info, io.BytesIO(_METADATA.encode()))
    return sdist
