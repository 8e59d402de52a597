"""The environment variables of three MPI implementations."""

import pytest
from tests.saying import error_saying

import evenfeed as tf

make = tf.distribute.cluster_resolver.MPIClusterResolver
OPEN = {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2"}


def set_all(monkeypatch, variables):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize(
    "variables",
    [
        OPEN | {"OMPI_COMM_WORLD_LOCAL_SIZE": "2"},
        {"PMI_RANK": "1", "PMI_SIZE": "2", "MPI_LOCALNRANKS": "2"},
    ],
)
def test_ranks_of_one_host_need_no_list(monkeypatch, variables):
    set_all(monkeypatch, variables)
    resolver = make(port_base=9)
    assert resolver.cluster_spec().as_dict() == {"worker": ["localhost:9", "localhost:10"]}
    assert (resolver.task_type, resolver.task_id) == ("worker", 1)
    assert (resolver.master(), resolver.master("worker", 0, "grpc")) == (
        "localhost:10",
        "grpc://localhost:9",
    )


@pytest.mark.parametrize("hosts", [None, ["a"], ["a", "b", "c"]])
def test_ranks_of_several_hosts_need_a_list_of_that_length(monkeypatch, hosts):
    set_all(monkeypatch, OPEN)
    with error_saying(
        ValueError,
        f"hosts must have one entry for each of the 2 ranks (1 on this host), but got {hosts!r}.",
        fix="pass the host of each rank, in rank order: hosts=['node1', 'node1', 'node2'].",
    ):
        make(hosts)


def test_a_program_that_mpirun_did_not_start_is_told():
    with error_saying(
        RuntimeError,
        "The environment has no OMPI_COMM_WORLD_RANK and no PMI_RANK: mpirun did not start this process.",
        fix="start the program with mpirun -n 4 python script.py.",
    ):
        make()
