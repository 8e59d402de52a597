"""Names that people from other libraries look for in `Dataset`, and what to write here."""

from typing import Final

_SLICES: Final = "Use evenfeed.data.Dataset.from_tensor_slices(values): arrays, lists, or dicts and tuples of them."
_LINES: Final = "Use evenfeed.data.TextLineDataset(paths)."
_RECORDS: Final = "Use evenfeed.data.TFRecordDataset(paths)."
_CSV: Final = (
    "Use evenfeed.data.experimental.make_csv_dataset(paths, batch_size), or CsvDataset beside it."
)
_FOLDER: Final = (
    "Use evenfeed.keras.utils.image_dataset_from_directory(folder), or "
    "evenfeed.data.Dataset.list_files(pattern).map(read): see docs/images.md."
)
_ITERABLE: Final = "Use evenfeed.data.Dataset.from_generator(function, output_signature=specs)."
_JSON: Final = "Use evenfeed.data.Dataset.from_json_lines(paths)."
_SPLIT: Final = (
    "Use take and skip, after shuffle(size, reshuffle_each_iteration=False); or "
    "evenfeed.keras.utils.split_dataset."
)
_COLUMNS: Final = 'Use map: dataset.map(lambda row: {"x": row["x"]}).'
_SELECT: Final = f"{_COLUMNS} For rows, use take, skip or filter."
_NUMPY: Final = "Use list(dataset.as_numpy_iterator())."
_TORCH: Final = "Iterate over it, and call torch.from_dlpack(x): see docs/from_pytorch.md."
_PACKED: Final = "Use pack(length): see docs/text.md."
_SPEC: Final = "Use dataset.element_spec."
_STATE: Final = "An iterator has the state: iter(dataset).get_state(), and set_state(state)."
_AS_IT_IS: Final = "Leave it out: elements are NumPy arrays, which jax.jit takes as they are."
_POSITIONS: Final = "Use evenfeed.data.Dataset.range(len(rows)).map(rows.__getitem__)."

IN_DATASET: Final = {
    **dict.fromkeys(("from_csv", "read_csv"), _CSV),
    **dict.fromkeys(("from_text", "from_text_lines", "from_lines", "from_text_files"), _LINES),
    **dict.fromkeys(("from_tfrecord", "from_tfrecords", "from_records"), _RECORDS),
    **dict.fromkeys(("from_images", "from_image_folder", "from_folder", "from_directory"), _FOLDER),
    **dict.fromkeys(("from_numpy", "from_array", "from_arrays", "from_list", "from_dict"), _SLICES),
    **dict.fromkeys(("from_pandas", "from_dataframe", "from_torch", "from_jax"), _SLICES),
    **dict.fromkeys(("from_iterable", "from_iterator"), _ITERABLE),
    **dict.fromkeys(("from_json", "from_jsonl"), _JSON),
    "from_feather": "Use evenfeed.data.Dataset.from_arrow(paths).",
    **dict.fromkeys(("from_source", "source", "from_sequence", "from_random_access"), _POSITIONS),
    **dict.fromkeys(("split", "random_split", "train_test_split"), _SPLIT),
    **dict.fromkeys(("rename", "rename_columns", "select_columns", "remove_columns"), _COLUMNS),
    "select": _SELECT,
    **dict.fromkeys(("column_names", "columns", "features", "dtypes"), _SPEC),
    **dict.fromkeys(("num_rows", "num_examples", "size"), "Use len(dataset)."),
    **dict.fromkeys(("concat", "extend", "append"), "Use concatenate(dataset)."),
    **dict.fromkeys(("pack_sequences", "packed_batch", "pack_and_batch"), _PACKED),
    **dict.fromkeys(("get_state", "set_state", "state_dict", "load_state_dict"), _STATE),
    **dict.fromkeys(("with_format", "set_format", "as_numpy", "to_jax"), _AS_IT_IS),
    **dict.fromkeys(("pin_memory", "persistent_workers"), "Leave it out, and use prefetch(n)."),
    "set_epoch": "Leave it out: shuffle draws a new order in each pass.",
    "to_tf_dataset": "Leave it out: this is a dataset of evenfeed.",
    **dict.fromkeys(("numpy", "to_numpy", "to_list"), _NUMPY),
    **dict.fromkeys(("to_torch", "to_pytorch"), _TORCH),
    "to_iter_dataset": "Leave it out: a Dataset is iterated over as it is.",
    **dict.fromkeys(("collate", "collate_fn"), "Use padded_batch, ragged_batch, or batch and map."),
    "mp_prefetch": "Use map(function, num_parallel_calls=n, processes=True), and prefetch(n).",
    "seed": "Pass the seed to shuffle(buffer_size, seed=seed).",
    "map_with_index": "Use enumerate().map(lambda index, x: ...).",
    "mix": "Use evenfeed.data.Dataset.sample_from_datasets(datasets, weights).",
    "slice": "Use skip(first).take(count), or shard(workers, index).",
    **dict.fromkeys(("head", "first"), "Use take(5), or next(iter(dataset))."),
}
