"""`evenfeed doctor`: shows what evenfeed finds on this machine, and what is wrong with it."""

import argparse
import json
import os
import platform
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from typing import Any, Final

from evenfeed import __version__
from evenfeed.cluster.resolvers.tf_config import TFConfigClusterResolver
from evenfeed.command.value_texts import without_place
from evenfeed.core.lazy import resource, socket, subprocess
from evenfeed.strategy.xla_threads import threads

_PATIENCE: Final = 90.0  # seconds until JAX must have found the devices
_ASK_JAX: Final = """
import json, jax
found = [[d.platform, d.device_kind, d.id] for d in jax.local_devices()]
print(json.dumps(found))
"""
_FEW_FILES: Final = 1024
_LAST_PORT: Final = 65535
_CONNECTING: Final = 1.0  # seconds
_LAUNCHERS: Final = {"SLURM_JOB_ID": "SLURM", "OMPI_COMM_WORLD_SIZE": "MPI"}


@dataclass(frozen=True)
class Diagnosis:
    """Something that was looked at: what was found, and what to do about it."""

    what: str
    fix: str | None = None
    wrong: bool = False

    def __str__(self) -> str:
        mark = "WRONG" if self.wrong else "ok" if self.fix is None else "note"
        lines = [f"  {mark:5}  {self.what}"]
        if self.fix is not None:
            lines.append(f"         fix: {self.fix}")
        return "\n".join(lines)


def add(commands: Any) -> None:
    """Add the command and its arguments."""
    doctor = commands.add_parser(
        "doctor",
        help="show what evenfeed finds on this machine, and what is wrong",
        description="Shows versions, devices, threads and the cluster as evenfeed sees them. The exit code is 1 if "
        "something is wrong.",
    )
    doctor.add_argument("--json", action="store_true", help="print JSON")
    doctor.set_defaults(act=act)


def act(given: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Look at the machine, and print what was found."""
    del parser
    devices, findings = _devices()
    findings += [*_threads(), *_files(), *_cluster()]
    packages = _packages()
    if given.json:
        print(json.dumps(_as_json(devices, packages, findings), indent=2))
    else:
        print(f"evenfeed {__version__}, Python {platform.python_version()}, {platform.platform()}")
        print(f"{os.cpu_count()} cores; devices: {_listed(devices)}")
        for extra, found in packages.items():
            versions = [f"{name} {at or 'missing'}" for name, at in found.items()]
            print(f"  {extra}: {', '.join(versions)}")
        print(*findings, sep="\n")
    return int(any(finding.wrong for finding in findings))


def _as_json(devices: Any, packages: Any, findings: list[Diagnosis]) -> dict[str, Any]:
    return {
        "evenfeed": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cores": os.cpu_count(),
        "devices": devices,
        "packages": packages,
        "findings": [asdict(finding) for finding in findings],
    }


def _listed(devices: list[Any]) -> str:
    kinds = Counter(kind for _, kind, _ in devices)
    return ", ".join(f"{count} x {kind}" for kind, count in kinds.items()) or "none"


def _devices() -> tuple[list[Any], list[Diagnosis]]:
    """Ask JAX for the devices, in a process of its own: it may hang, or end the process."""
    try:
        asked = subprocess.run(
            [sys.executable, "-c", _ASK_JAX],
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        fix = "set JAX_PLATFORMS=cpu to leave the accelerator out, and see whether that helps."
        return [], [
            Diagnosis(f"JAX found no devices within {_PATIENCE:.0f} seconds.", fix, wrong=True)
        ]
    if asked.returncode:
        last = asked.stderr.strip().splitlines()[-1:] or [f"exit code {asked.returncode}"]
        fix = "run python -c 'import jax; jax.devices()' to see the whole error."
        return [], [Diagnosis(f"JAX does not start: {last[0]}", fix, wrong=True)]
    devices = json.loads(asked.stdout.splitlines()[-1])
    return devices, [Diagnosis("JAX starts.")]


def _packages() -> dict[str, dict[str, str | None]]:
    """Return the versions of what evenfeed needs, by extra; None for what is missing."""
    found: dict[str, dict[str, str | None]] = {}
    for requirement in requires("evenfeed") or ():
        needed, _, marker = requirement.partition(";")
        name = needed.strip().split("[")[0].split(">")[0].split("=")[0].strip()
        extra = marker.partition("extra ==")[2].strip().strip("'\"") or "evenfeed"
        found.setdefault(extra, {})[name] = _version(name)
    return found


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _threads() -> Iterator[Diagnosis]:
    """Whether XLA has enough threads for the CPU devices that the environment asks for."""
    found = threads()
    if found.devices <= 1:
        return
    what = f"XLA will start {found.expected} threads for {found.devices} CPU devices."
    if found.expected >= found.wanted:
        yield Diagnosis(what)
    else:
        yield Diagnosis(
            f"{what} A strategy raises that, but not after the program has used JAX.",
            f"export NPROC={found.wanted}",
        )


def _files() -> Iterator[Diagnosis]:
    limit, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    few = limit < _FEW_FILES
    yield Diagnosis(f"{limit:,} files may be open at once.", f"ulimit -n {hard}" if few else None)


def _cluster() -> Iterator[Diagnosis]:
    """What the environment says about other workers, and whether they can be reached."""
    for variable, launcher in _LAUNCHERS.items():
        if variable in os.environ:
            yield Diagnosis(f"{launcher} started this process ({variable} is set).")
    if not os.environ.get("TF_CONFIG"):
        yield Diagnosis("TF_CONFIG is not set: MultiWorkerMirroredStrategy has one worker.")
        return
    try:
        resolver = TFConfigClusterResolver()
        jobs, task = resolver.cluster_spec().as_dict(), (resolver.task_type, resolver.task_id)
    except (ValueError, TypeError) as error:
        what, _, fix = without_place(error).partition("\n  fix: ")
        fix = fix or "see docs/workers.md."
        yield Diagnosis(f"TF_CONFIG is wrong: {what}", fix, wrong=True)
        return
    yield Diagnosis(f"TF_CONFIG: this is {task[0]} {task[1]} of {jobs}.")
    for job, addresses in jobs.items():
        for number, address in enumerate(addresses):
            yield _address(address, own=(job, number) == task)


def _address(address: str, *, own: bool) -> Diagnosis:
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or int(port) > _LAST_PORT:
        fix = f"write it as host:port, with a port of at most {_LAST_PORT}, in TF_CONFIG on all workers."
        return Diagnosis(f"{address} is not the address of a worker.", fix, wrong=True)
    if own:
        return _own_port(host, int(port))
    try:
        socket.create_connection((host, int(port)), _CONNECTING).close()
    except ConnectionRefusedError:
        return Diagnosis(f"{address} can be reached; no worker listens there yet.")
    except OSError as error:
        return Diagnosis(
            f"{address} cannot be reached: {error}.",
            "check the name, the network and the firewall.",
            wrong=True,
        )
    return Diagnosis(f"{address} answers.")


def _own_port(host: str, port: int) -> Diagnosis:
    try:
        socket.getaddrinfo(host, port)
        with socket.socket() as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            tried.bind(("", port))
    except OSError as error:
        return Diagnosis(
            f"This worker cannot listen at {host}:{port}: {error}.",
            "end the program that uses the port, or choose another in TF_CONFIG on all workers.",
            wrong=True,
        )
    return Diagnosis(f"This worker can listen at {host}:{port}.")
