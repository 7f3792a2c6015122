"""A PEP 517 and PEP 660 backend for one package of pure Python: it copies files into an archive, and needs nothing that has to be
downloaded first. scripts/wheel writes with it the wheel that has library and command in it.
"""
import base64
import hashlib
import io
import re
import stat
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
PURE = "py3-none-any"
INFO = f"{NAME}-{VERSION}.dist-info"


def sources():
    return sorted(path for path in (HERE / NAME).rglob("*") if path.suffix == ".py" or path.name == "py.typed")


def _entry(name, mode):
    """The same at any time: a ZipInfo is of 1980 unless it is told otherwise."""
    entry = zipfile.ZipInfo(name)
    entry.compress_type, entry.create_system, entry.external_attr = zipfile.ZIP_DEFLATED, 3, (stat.S_IFREG | mode) << 16
    return entry


def _info(tag):
    """What a .dist-info directory has but for its RECORD: contents by name."""
    about = f"Wheel-Version: 1.0\nGenerator: fumehood\nRoot-Is-Purelib: {str(tag == PURE).lower()}\nTag: {tag}\n"
    return {f"{INFO}/METADATA": _METADATA.encode(), f"{INFO}/WHEEL": about.encode()}


def write_wheel(directory, files, tag=PURE, executables=()):
    """The same bytes from the same files, which are contents by name, in the order of their names."""
    records = []
    wheel = f"{NAME}-{VERSION}-{tag}.whl"
    with zipfile.ZipFile(Path(directory) / wheel, "w") as archive:
        for name, content in [*sorted(files.items()), *_info(tag).items()]:
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            records.append(f"{name},sha256={digest},{len(content)}\n")
            archive.writestr(_entry(name, 0o755 if name in executables else 0o644), content)
        archive.writestr(_entry(f"{INFO}/RECORD", 0o644), "".join(records) + f"{INFO}/RECORD,,\n")
    return wheel


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    for name, content in _info(PURE).items():
        path = Path(metadata_directory) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return INFO


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    return write_wheel(wheel_directory, {str(path.relative_to(HERE)): path.read_bytes() for path in sources()})


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    return write_wheel(wheel_directory, {f"{NAME}.pth": f"{HERE}\n".encode()})


def build_sdist(sdist_directory, config_settings=None):
    top, sdist = f"{NAME}-{VERSION}", f"{NAME}-{VERSION}.tar.gz"
    with tarfile.open(Path(sdist_directory) / sdist, "w:gz", format=tarfile.PAX_FORMAT) as archive:
        for path in [HERE / "pyproject.toml", HERE / "README.md", HERE / "build_backend.py", *sources()]:
            archive.add(path, f"{top}/{path.relative_to(HERE)}")
        info = tarfile.TarInfo(f"{top}/PKG-INFO")
        info.size = len(_METADATA.encode())
        archive.addfile(info, io.BytesIO(_METADATA.encode()))
    return sdist
