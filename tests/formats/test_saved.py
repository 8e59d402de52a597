import json
import os
from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest
from tests.formats.columns import plain_rows
from tests.saying import error_saying

from evenfeed.core import dtypes
from evenfeed.core.block import Block
from evenfeed.core.errors import (
    DataLossError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
)
from evenfeed.core.specs import NoneTensorSpec, TensorSpec
from evenfeed.formats.pages.saved import SavedWriter, find_saved, load_saved

INT = TensorSpec([], dtypes.int64)
Pair = namedtuple("Pair", "y x")


def numbers(*values):
    return Block((np.array(values),), len(values))


def save(path, *blocks, spec=INT, shards=None, compression=""):
    writer = SavedWriter(str(path), spec, compression)
    for block in blocks:
        writer.add(block, None if shards is None else np.array(shards))
    writer.finish()
    return load_saved(str(path))


def rows(saved):
    return [plain_rows(file.open().whole(0, file.rows)) for file in saved.files]


def values(saved):
    return [[row[0][2] for row in shard] for shard in rows(saved)]


def test_a_folder_gives_back_what_was_saved(tmp_path):
    saved = save(tmp_path / "a" / "b", numbers(1, 2), numbers(3))
    assert values(saved) == [[1, 2, 3]]
    assert saved.element_spec == INT


def test_an_empty_dataset_is_saved_too(tmp_path):
    saved = save(tmp_path / "a")
    assert saved.files == ()
    assert saved.element_spec == INT


def test_each_shard_has_a_file_in_the_order_of_numbers_without_a_sign(tmp_path):
    saved = save(tmp_path / "a", numbers(1, 2, 3, 4), numbers(5, 6, 7, 8), shards=[7, -1, 0, 7])
    assert values(saved) == [[3, 7], [1, 4, 5, 8], [2, 6]]
    names = [os.path.basename(file.path) for file in saved.files]
    assert names == ["00000000.pages", "00000007.pages", "18446744073709551615.pages"]


def test_saving_again_replaces_what_was_there(tmp_path):
    save(tmp_path / "a", numbers(1, 2), shards=[0, 1])
    assert values(save(tmp_path / "a", numbers(3))) == [[3]]
    assert len(list((tmp_path / "a").rglob("*.pages"))) == 1
    assert len(os.listdir(tmp_path / "a")) == 2


def test_other_files_in_the_folder_stay(tmp_path):
    save(tmp_path, numbers(1))
    (tmp_path / "notes.txt").write_text("mine")
    save(tmp_path, numbers(2))
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_nothing_is_left_of_what_was_discarded(tmp_path):
    writer = SavedWriter(str(tmp_path / "a"), INT, "")
    writer.add(numbers(1))
    writer.discard()
    assert os.listdir(tmp_path) == []
    writer = SavedWriter(str(tmp_path), INT, "")
    writer.add(numbers(1))
    del writer
    assert tmp_path.exists()
    assert os.listdir(tmp_path) == []


def test_what_was_there_stays_until_the_new_is_whole(tmp_path):
    save(tmp_path, numbers(1))
    writer = SavedWriter(str(tmp_path), INT, "")
    writer.add(numbers(2))
    assert values(load_saved(str(tmp_path))) == [[1]]
    writer.discard()
    assert values(load_saved(str(tmp_path))) == [[1]]


def test_the_first_of_two_stays_where_the_second_does_not_replace(tmp_path):
    one, two = (SavedWriter(str(tmp_path), INT, "") for _ in range(2))
    one.add(numbers(1))
    two.add(numbers(2))
    one.finish(replace=False)
    two.finish(replace=False)
    assert values(load_saved(str(tmp_path))) == [[1]]
    assert len(os.listdir(tmp_path)) == 2


def test_a_folder_without_a_dataset_says_so(tmp_path):
    assert find_saved(str(tmp_path)) is None
    with error_saying(
        NotFoundError,
        f"There is no saved dataset in {tmp_path}: {tmp_path}/dataset.json does not exist.",
        fix="save one first: dataset.save(path).",
    ):
        load_saved(str(tmp_path))
    (tmp_path / "file").touch()
    with pytest.raises(NotFoundError, match="There is no saved dataset"):
        load_saved(str(tmp_path / "file"))


def test_an_unfinished_one_says_so(tmp_path):
    writer = SavedWriter(str(tmp_path), INT, "")
    writer.add(numbers(2))
    with error_saying(
        NotFoundError,
        f"The dataset in {tmp_path} is incomplete: it is still being saved, or its writer was interrupted.",
        fix="save it again, or wait for its writer: load(path, wait=True).",
    ):
        load_saved(str(tmp_path))


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "file").touch()
    with error_saying(
        FailedPreconditionError,
        f"{tmp_path / 'file'} is a file, but the dataset needs a directory.",
        fix="pass the path of a directory…",
    ):
        SavedWriter(str(tmp_path / "file"), INT, "")


def test_any_change_to_the_index_is_found(tmp_path):
    save(tmp_path, numbers(1))
    index = tmp_path / "dataset.json"
    whole = index.read_text()
    for place in range(0, len(whole), 7):
        index.write_text(whole[:place] + chr(ord(whole[place]) ^ 1) + whole[place + 1 :])
        with pytest.raises(DataLossError, match=r"dataset\.json"):
            load_saved(str(tmp_path))
        index.write_text(whole[:place])
        with pytest.raises(DataLossError, match=r"dataset\.json is damaged"):
            load_saved(str(tmp_path))


def test_another_version_says_so(tmp_path):
    save(tmp_path, numbers(1))
    index = tmp_path / "dataset.json"
    index.write_text(json.dumps(json.loads(index.read_text()) | {"format": "evenfeed dataset 9"}))
    with pytest.raises(
        DataLossError, match="has format 'evenfeed dataset 9', but this version of evenfeed reads"
    ):
        load_saved(str(tmp_path))


def test_a_damaged_folder_can_be_saved_into(tmp_path):
    save(tmp_path, numbers(1))
    (tmp_path / "dataset.json").write_text("{")
    assert values(save(tmp_path, numbers(2))) == [[2]]


def unlike():
    rows = [np.zeros((2, 3), np.int64), np.zeros((5, 3), np.int64)]
    return Block((rows, None), 2)


UNLIKE = (TensorSpec(None, dtypes.int64), NoneTensorSpec())


@pytest.mark.parametrize("shape", [None, [None, None], [None, 3]])
def test_specs_that_all_elements_have_are_taken(tmp_path, shape):
    saved = save(tmp_path, unlike(), spec=UNLIKE)
    asked = (TensorSpec(shape, dtypes.int64), NoneTensorSpec())
    assert saved.spec_like(asked) is asked


@pytest.mark.parametrize(
    "asked",
    [
        (TensorSpec([2, 3], dtypes.int64), NoneTensorSpec()),
        (TensorSpec([None], dtypes.int64), NoneTensorSpec()),
        (TensorSpec(None, dtypes.int32), NoneTensorSpec()),
        (TensorSpec(None, dtypes.int64), TensorSpec(None, dtypes.int64)),
        (NoneTensorSpec(), NoneTensorSpec()),
        (None, None),
        TensorSpec(None, dtypes.int64),
        Pair(TensorSpec(None, dtypes.int64), NoneTensorSpec()),
    ],
)
def test_specs_that_not_all_elements_have_are_refused(tmp_path, asked):
    saved = save(tmp_path, unlike(), spec=UNLIKE)
    with pytest.raises(InvalidArgumentError, match=f"The elements in {tmp_path} do not have"):
        saved.spec_like(asked)


def test_an_empty_dataset_has_any_shape_that_fits(tmp_path):
    saved = save(tmp_path, spec=TensorSpec([None], dtypes.int64))
    saved.spec_like(TensorSpec([4], dtypes.int64))
    with pytest.raises(InvalidArgumentError, match="do not have the element_spec"):
        saved.spec_like(TensorSpec([], dtypes.int64))


@pytest.mark.parametrize("replace", [True, False])
def test_saves_that_finish_at_the_same_time_leave_one_dataset_behind(tmp_path, replace):
    together = Barrier(8)

    def save_with_others(number):
        writer = SavedWriter(str(tmp_path), INT, "")
        writer.add(numbers(number))
        together.wait()
        writer.finish(replace=replace)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(save_with_others, range(8)))
    ((number,),) = values(load_saved(str(tmp_path)))
    assert number in range(8)
    assert len(list(tmp_path.iterdir())) == 2  # the files of one save, and the index
