"""Finds this machine's accelerators: from files and the environment before JAX starts, from JAX afterwards.

Asking JAX starts its backend, and after that nothing can be configured. So before that, the evidence is device
files, installed JAX plugins and the environment. JAX is not even loaded.
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

# The names of each platform in JAX_PLATFORMS.
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
    """The part of `jax.Device` that evenfeed uses."""

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
    """Where to look: this machine, or a folder that stands in for one."""

    root: Path = Path("/")
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)

    def files(self, folder: str, pattern: str) -> int:
        """Count the files in a folder whose full name matches a regular expression."""
        try:
            names = os.listdir(self.root / folder)
        except OSError:
            return 0
        return sum(re.fullmatch(pattern, name) is not None for name in names)


@final
@dataclass(frozen=True)
class Accelerators:
    """The number of GPUs and TPU chips, and the JAX platform of the GPUs."""

    gpus: int = 0
    tpus: int = 0
    gpu_platform: str | None = None


def accelerators_found(platforms: str | None, machine: Machine | None = None) -> Accelerators:
    """Look for accelerators without JAX.

    Args:
        platforms: JAX_PLATFORMS, which may exclude some; None or empty excludes none.
        machine: Where to look.
    """
    machine = machine or Machine()
    cuda = _nvidia_gpus(machine) if _usable("cuda", platforms) else 0
    rocm = _amd_gpus(machine) if not cuda and _usable("rocm", platforms) else 0
    tpus = _tpu_chips(machine) if _usable("tpu", platforms) else 0
    return Accelerators(cuda or rocm, tpus, "cuda" if cuda else "rocm" if rocm else None)


def accelerators_started() -> Accelerators:
    """Ask JAX, whose backend has already started."""
    return Accelerators(len(started_devices("GPU")), len(started_devices("TPU")))


def accelerators_in_use() -> Accelerators:
    """Return what JAX computes on or will compute on, without hidden devices. Does not start JAX."""
    if backend_started():
        return accelerators_started()
    found = accelerators_found(platforms_asked_for())
    chosen = _gpus_chosen(found.gpu_platform)
    return found if chosen is None else replace(found, gpus=_visible(found.gpus, chosen))


def _gpus_chosen(platform: str | None) -> str | None:
    """Return the GPUs that JAX is configured to use, as text; None for all."""
    if platform is None or "jax" not in sys.modules:
        return None
    chosen = _jax.config.read(f"jax_{platform}_visible_devices")
    return None if chosen == "all" else chosen


def started_devices(device_type: str) -> list[Device]:
    """List this process's JAX devices of one type. Starts JAX's backend."""
    try:
        return _jax.local_devices(backend=device_type.lower())
    except RuntimeError:
        # JAX raises this for a platform that it does not have. If the backend failed to start for another
        # reason, this call raises that error again.
        _jax.local_devices()
        return []


def platforms_asked_for(environ: Mapping[str, str] = os.environ) -> str | None:
    """Return the platforms that JAX may use, without loading JAX."""
    if "jax" in sys.modules:
        return _jax.config.jax_platforms
    return environ.get("JAX_PLATFORMS")


def platforms_without(hidden: set[str], asked: str | None, found: Accelerators) -> str | None:
    """Return the JAX_PLATFORMS without the hidden device types.

    Examples:
        >>> platforms_without({"GPU"}, "cuda,cpu", Accelerators())
        'cpu'
        >>> platforms_without({"GPU"}, None, Accelerators(gpus=2, tpus=4))
        'tpu,cpu'
    """
    if not hidden:
        return asked
    names = asked.split(",") if asked else [*_found_platforms(found), "cpu"]
    excluded = frozenset[str]().union(*(_PLATFORMS_OF[kind] for kind in hidden))
    return ",".join(name for name in names if name not in excluded) or "cpu"


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
    total = machine.files("dev/dri", r"renderD\d+")
    by_driver = _visible(total, machine.environ.get("ROCR_VISIBLE_DEVICES"))
    return _visible(by_driver, machine.environ.get("HIP_VISIBLE_DEVICES"))


def _tpu_chips(machine: Machine) -> int:
    return machine.files("dev", r"accel\d+") or machine.files("dev/vfio", r"\d+")


def _visible(total: int, chosen: str | None) -> int:
    """Count the devices that a *_VISIBLE_DEVICES selects: up to the first invalid entry, as the drivers do."""
    if chosen is None:
        return total
    count = 0
    for entry in chosen.split(","):
        if not _is_there(entry.strip(), total):
            break
        count += 1
    return min(count, total)


def _is_there(entry: str, total: int) -> bool:
    if entry.isdigit():
        return int(entry) < total
    return entry.startswith(("GPU-", "MIG-"))  # a device's UUID
