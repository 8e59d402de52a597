"""What this machine can compute on: by cheap evidence before JAX starts, by JAX's word after that.

Asking JAX starts its backend, after which nothing can be configured; so the evidence is device
files, installed JAX plugins and the environment, and JAX is not even loaded for it.
"""

import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, Protocol, final

from evenfeed.cluster.jax_private import backend_started
from evenfeed.core.lazy_jax import jax

# JAX leaves many of its own types unknown, jax.Device among them.
_jax: Any = jax

_PLUGINS: Final[Mapping[str, tuple[str, ...]]] = {
    "cuda": ("jax_cuda12_plugin", "jax_cuda13_plugin"),
    "rocm": ("jax_rocm60_plugin", "jax_rocm7_plugin"),
    "tpu": ("libtpu",),
}

# The names that JAX_PLATFORMS knows each platform by.
_NAMES: Final[Mapping[str, frozenset[str]]] = {
    "cuda": frozenset({"cuda", "gpu"}),
    "rocm": frozenset({"rocm", "gpu"}),
    "tpu": frozenset({"tpu"}),
}

_PLATFORMS_OF: Final[Mapping[str, frozenset[str]]] = {
    "GPU": frozenset({"gpu", "cuda", "rocm"}),
    "TPU": frozenset({"tpu"}),
}


class Device(Protocol):
    """What evenfeed asks of a `jax.Device`."""

    @property
    def platform(self) -> str:
        """`cpu`, `gpu` or `tpu`."""
        ...

    @property
    def process_index(self) -> int:
        """The process that the device belongs to."""
        ...


@final
@dataclass(frozen=True)
class Machine:
    """Where to look: this machine, or a folder that stands for one."""

    root: Path = Path("/")
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)

    def files(self, folder: str, pattern: str) -> int:
        """Count the files of a folder whose whole name matches a regular expression."""
        try:
            names = os.listdir(self.root / folder)
        except OSError:
            return 0
        return sum(re.fullmatch(pattern, name) is not None for name in names)


@final
@dataclass(frozen=True)
class Accelerators:
    """How many GPUs and TPU chips there are, and by which JAX platform the GPUs are driven."""

    gpus: int = 0
    tpus: int = 0
    gpu_platform: str | None = None


def accelerators_found(platforms: str | None, machine: Machine | None = None) -> Accelerators:
    """Look for accelerators without JAX.

    Args:
        platforms: JAX_PLATFORMS, which may leave some out; None or empty leaves none out.
        machine: Where to look.
    """
    machine = machine or Machine()
    cuda = _nvidia_gpus(machine) if _usable("cuda", platforms) else 0
    rocm = _amd_gpus(machine) if not cuda and _usable("rocm", platforms) else 0
    tpus = _tpu_chips(machine) if _usable("tpu", platforms) else 0
    return Accelerators(cuda or rocm, tpus, "cuda" if cuda else "rocm" if rocm else None)


def accelerators_started() -> Accelerators:
    """Ask JAX, whose backend has started."""
    return Accelerators(len(started_devices("GPU")), len(started_devices("TPU")))


def accelerators_in_use() -> Accelerators:
    """Tell what JAX computes on, or will: what the program hid is not counted. JAX is not started for it."""
    if backend_started():
        return accelerators_started()
    found = accelerators_found(platforms_asked_for())
    chosen = _gpus_chosen(found.gpu_platform)
    return found if chosen is None else replace(found, gpus=_visible(found.gpus, chosen))


def _gpus_chosen(platform: str | None) -> str | None:
    """Return the GPUs that JAX was told to use, as text; None for all."""
    if platform is None or "jax" not in sys.modules:
        return None
    chosen = _jax.config.read(f"jax_{platform}_visible_devices")
    return None if chosen == "all" else chosen


def started_devices(device_type: str) -> list[Device]:
    """List this process's JAX devices of one type. This starts JAX's backend."""
    try:
        return _jax.local_devices(backend=device_type.lower())
    except RuntimeError:
        # JAX says so of a platform that it does not have; what else goes wrong in starting it
        # would come again here.
        _jax.local_devices()
        return []


def platforms_asked_for(environ: Mapping[str, str] = os.environ) -> str | None:
    """Tell which platforms JAX may use, without loading JAX for it."""
    if "jax" in sys.modules:
        return _jax.config.jax_platforms
    return environ.get("JAX_PLATFORMS")


def platforms_without(hidden: set[str], asked: str | None, found: Accelerators) -> str | None:
    """Write the JAX_PLATFORMS that leaves out the hidden device types.

    Examples:
        >>> platforms_without({"GPU"}, "cuda,cpu", Accelerators())
        'cpu'
        >>> platforms_without({"GPU"}, None, Accelerators(gpus=2, tpus=4))
        'tpu,cpu'
    """
    if not hidden:
        return asked
    names = asked.split(",") if asked else [*_found_platforms(found), "cpu"]
    left_out = frozenset[str]().union(*(_PLATFORMS_OF[kind] for kind in hidden))
    return ",".join(name for name in names if name not in left_out) or "cpu"


def _found_platforms(found: Accelerators) -> list[str]:
    tpu = ["tpu"] if found.tpus else []
    return tpu + ([found.gpu_platform] if found.gpu_platform else [])


def _usable(platform: str, platforms: str | None) -> bool:
    allowed = not platforms or not _NAMES[platform].isdisjoint(platforms.split(","))
    return allowed and any(find_spec(plugin) is not None for plugin in _PLUGINS[platform])


def _nvidia_gpus(machine: Machine) -> int:
    return _visible(machine.files("dev", r"nvidia\d+"), machine.environ.get("CUDA_VISIBLE_DEVICES"))


def _amd_gpus(machine: Machine) -> int:
    if not machine.files("dev", "kfd"):
        return 0
    every = machine.files("dev/dri", r"renderD\d+")
    by_driver = _visible(every, machine.environ.get("ROCR_VISIBLE_DEVICES"))
    return _visible(by_driver, machine.environ.get("HIP_VISIBLE_DEVICES"))


def _tpu_chips(machine: Machine) -> int:
    return machine.files("dev", r"accel\d+") or machine.files("dev/vfio", r"\d+")


def _visible(every: int, chosen: str | None) -> int:
    """Count what a *_VISIBLE_DEVICES leaves: as the drivers do, up to the first that is not there."""
    if chosen is None:
        return every
    count = 0
    for entry in chosen.split(","):
        if not _is_there(entry.strip(), every):
            break
        count += 1
    return min(count, every)


def _is_there(entry: str, every: int) -> bool:
    if entry.isdigit():
        return int(entry) < every
    return entry.startswith(("GPU-", "MIG-"))  # a device's own identifier
