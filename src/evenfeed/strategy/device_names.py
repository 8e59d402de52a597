"""Device names in TensorFlow's format: `/job:worker/replica:0/task:1/device:GPU:0`."""

from dataclasses import dataclass
from typing import Final, NamedTuple, NoReturn, final

from evenfeed.core.errors import described

DEVICE_TYPES: Final = ("CPU", "GPU", "TPU")

_KEYS: Final = ("job", "replica", "task", "device")

_HOW_TO_WRITE: Final = (
    'write it as "CPU:0", "GPU:1" or "/job:worker/replica:0/task:0/device:GPU:0".'
)


class PhysicalDevice(NamedTuple):
    """A device of this machine: the CPU, a GPU or a TPU chip.

    Examples:
        >>> import evenfeed as tf
        >>> tf.config.PhysicalDevice("/physical_device:CPU:0", "CPU")
        PhysicalDevice(name='/physical_device:CPU:0', device_type='CPU')
    """

    name: str
    device_type: str


class LogicalDevice(NamedTuple):
    """A device that computations run on. The CPU can be split into several.

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
    """The name of one device of one process. `str()` gives TensorFlow's canonical form.

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
        """Parse a name of any length, from `cpu` to the canonical form. Missing numbers are 0."""
        if not isinstance(text, str):
            _reject_non_string(text)
        parts = _parts(text)
        if "type" not in parts:
            _reject(text, "it has no device type")
        return cls(
            job=parts.get("job", "localhost"),
            replica=_number(text, parts.get("replica", "0")),
            task=_number(text, parts.get("task", "0")),
            device_type=parts["type"],
            index=_number(text, parts["index"].replace("*", "0")),
        )

    @property
    def short(self) -> str:
        """The name within its own process, such as `CPU:0`."""
        return f"{self.device_type}:{self.index}"

    def __str__(self) -> str:
        return f"/job:{self.job}/replica:{self.replica}/task:{self.task}/device:{self.short}"


def _parts(text: str) -> dict[str, str]:
    """Split a name into its fields. The parts may come in any order, each at most once."""
    found: dict[str, str] = {}
    for part in filter(None, text.split("/")):
        fields = _fields(text, part)
        if fields.keys() & found.keys():
            _reject(text, f"{part!r} repeats an earlier part")
        found |= fields
    return found


def _fields(text: str, part: str) -> dict[str, str]:
    match part.split(":"):
        case [("job" | "replica" | "task") as key, value] if value:
            return {key: value}
        case ["device", kind, index] | [kind, index] if kind not in _KEYS:
            return {"type": _device_type(text, kind), "index": index}
        case [kind] if kind not in _KEYS:
            return {"type": _device_type(text, kind), "index": "0"}
        case _:
            return _reject(text, f"{part!r} is not part of a device name")


def _device_type(text: str, kind: str) -> str:
    if kind.upper() not in DEVICE_TYPES:
        _reject(text, f"{kind!r} is not one of {', '.join(DEVICE_TYPES)}")
    return kind.upper()


def _number(text: str, digits: str) -> int:
    if not (digits.isascii() and digits.strip().isdigit()):
        _reject(text, f"{digits!r} is not a non-negative integer")
    return int(digits)


def _reject_non_string(value: object) -> NoReturn:
    """Raise ValueError for a value that is not a string. For a device, name the string to pass."""
    why = f"it is {type(value).__name__}, not a string"
    match value:
        case LogicalDevice():
            _reject(value, why, fix=f"pass device.name, here {value.name!r}.")
        case PhysicalDevice():
            logical = value.name.removeprefix("/physical_device:")
            _reject(value, why, fix=f"pass the name of a logical device, here {logical!r}.")
        case _:
            _reject(value, why)


def _reject(text: object, why: str, fix: str = _HOW_TO_WRITE) -> NoReturn:
    raise ValueError(described(f"{text!r} is not a device name: {why}.", fix=fix))
