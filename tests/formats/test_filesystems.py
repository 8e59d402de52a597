import pytest

from evenfeed.core import errors
from evenfeed.formats.bytes.filesystems import is_remote, local, matching, naming, size_of


@pytest.mark.parametrize(
    ("raised", "kind", "said"),
    [
        (FileNotFoundError(), errors.NotFoundError, "some/file does not exist"),
        (NotADirectoryError(), errors.NotFoundError, "some/file does not exist"),
        (IsADirectoryError(), errors.FailedPreconditionError, "some/file is a directory"),
        (
            PermissionError(),
            errors.PermissionDeniedError,
            "some/file cannot be opened: permission denied",
        ),
        (FileExistsError(), errors.AlreadyExistsError, "some/file already exists"),
        (OSError(5, "no disk"), errors.UnknownError, "some/file cannot be used.*no disk"),
    ],
)
def test_what_the_system_says_names_the_file(raised, kind, said):
    with pytest.raises(kind, match=said) as caught, naming("some/file"):
        raise raised
    assert caught.value.__cause__ is raised


@pytest.mark.parametrize(
    "raised", [ValueError("x"), errors.DataLossError("x"), KeyboardInterrupt()]
)
def test_all_other_errors_stay_as_they_are(raised):
    with pytest.raises(type(raised)) as caught, naming("some/file"):
        raise raised
    assert caught.value is raised


def test_a_path_with_a_scheme_is_remote():
    assert is_remote("gs://bucket/x")
    assert not is_remote("/tmp/x")
    assert not is_remote("file:///tmp/x")
    assert local("file:///tmp/x") == "/tmp/x"


def test_names_that_are_no_text_are_matched(tmp_path):
    odd = bytes(tmp_path) + b"/\xff.txt"
    with open(odd, "wb") as file:
        file.write(b"abc")
    found = matching(f"{tmp_path}/*.txt")
    assert [name.encode("utf-8", "surrogateescape") for name in found] == [odd]
    assert size_of(found[0]) == 3
