"""Devices by name, as TensorFlow writes them: `/job:worker/replica:0/task:1/device:GPU:0`."""

from dataclasses import dataclass
from typing import Final, NamedTuple, NoReturn, final

from evenfeed.core.errors import described

DEVICE_TYPES: Final = ("CPU", "GPU", "TPU")

_KEYS: Final = ("job", "replica", "task", "device")

_HOW_TO_WRITE: Final = (
    'write it as "CPU:0", "GPU:1" or "/job:worker/replica:0/task:0/device:GPU:0".'
)


class PhysicalDevice(NamedTuple):
    """A device of this machine: the CPU, one GPU, one TPU chip.

    Examples:
        >>> import evenfeed as tf
        >>> tf.config.PhysicalDevice("/physical_device:CPU:0", "CPU")
        PhysicalDevice(name='/physical_device:CPU:0', device_type='CPU')
    """

    name: str
    device_type: str


class LogicalDevice(NamedTuple):
    """A device that computations run on; the CPU can be several of them.

    Examples:
        >>> import evenfeed as tf
        >>> tf.config.LogicalDevice("/device:CPU:0", "CPU")
        LogicalDevice(name='/device:CPU:0', device_type='CPU')
    """

    name: str
    device_type: str


@final
@dataclass(frozen=True, slots=True)
class DeviceName:
    """One device of one process; its string is TensorFlow's canonical name.

    Examples:
        >>> str(DeviceName.parse("gpu:1"))
        '/job:localhost/replica:0/task:0/device:GPU:1'
        >>> DeviceName.parse("/job:worker/task:2/cpu").short
        'CPU:0'
    """

    job: str = "localhost"
    replica: int = 0
    task: int = 0
    device_type: str = "CPU"
    index: int = 0

    @classmethod
    def parse(cls, text: object) -> "DeviceName":
        """Read a name of any length, from `cpu` to the canonical one; what is left out is 0."""
        if not isinstance(text, str):
            _refuse_other(text)
        parts = _parts(text)
        if "type" not in parts:
            _refuse(text, "it names no device")
        return cls(
            job=parts.get("job", "localhost"),
            replica=_number(text, parts.get("replica", "0")),
            task=_number(text, parts.get("task", "0")),
            device_type=parts["type"],
            index=_number(text, parts["index"].replace("*", "0")),
        )

    @property
    def short(self) -> str:
        """The name inside its own process: `CPU:0`."""
        return f"{self.device_type}:{self.index}"

    def __str__(self) -> str:
        return f"/job:{self.job}/replica:{self.replica}/task:{self.task}/device:{self.short}"


def _parts(text: str) -> dict[str, str]:
    """Split a name into what each part says; every part may stand at any place, but only once."""
    found: dict[str, str] = {}
    for part in filter(None, text.split("/")):
        said = _said(text, part)
        if said.keys() & found.keys():
            _refuse(text, f"{part!r} says again what an earlier part said")
        found |= said
    return found


def _said(text: str, part: str) -> dict[str, str]:
    match part.split(":"):
        case [("job" | "replica" | "task") as key, value] if value:
            return {key: value}
        case ["device", kind, index] | [kind, index] if kind not in _KEYS:
            return {"type": _device_type(text, kind), "index": index}
        case [kind] if kind not in _KEYS:
            return {"type": _device_type(text, kind), "index": "0"}
        case _:
            return _refuse(text, f"{part!r} is no part of a device's name")


def _device_type(text: str, kind: str) -> str:
    if kind.upper() not in DEVICE_TYPES:
        _refuse(text, f"{kind!r} is none of {', '.join(DEVICE_TYPES)}")
    return kind.upper()


def _number(text: str, digits: str) -> int:
    if not (digits.isascii() and digits.strip().isdigit()):
        _refuse(text, f"{digits!r} is not a number from 0 on")
    return int(digits)


def _refuse_other(value: object) -> NoReturn:
    """Refuse what is no string; of a device, say which string to pass."""
    why = f"it is {type(value).__name__}, not a string"
    match value:
        case LogicalDevice():
            _refuse(value, why, fix=f"pass device.name, here {value.name!r}.")
        case PhysicalDevice():
            logical = value.name.removeprefix("/physical_device:")
            _refuse(value, why, fix=f"pass the name of a logical device, here {logical!r}.")
        case _:
            _refuse(value, why)


def _refuse(text: object, why: str, fix: str = _HOW_TO_WRITE) -> NoReturn:
    raise ValueError(described(f"{text!r} is not a device's name: {why}.", fix=fix))
