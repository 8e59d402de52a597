"""Read the same table from CSV, JSON lines and Parquet, where pyarrow is installed."""

import importlib.util
import json
import tempfile
from pathlib import Path

import evenfeed as tf

ROWS = [{"day": f"day {number % 7}", "hours": number, "sold": number * 0.5} for number in range(10)]

with tempfile.TemporaryDirectory() as folder:
    records = [f"{row['day']},{row['hours']},{row['sold']}" for row in ROWS]
    Path(folder, "sales.csv").write_text("\n".join(["day,hours,sold", *records]))
    Path(folder, "sales.jsonl").write_text("\n".join(map(json.dumps, ROWS)))

    batches = tf.data.experimental.make_csv_dataset(
        f"{folder}/*.csv", batch_size=4, label_name="sold", num_epochs=1, shuffle=False
    )
    for features, labels in batches:
        print("CSV", features["hours"].tolist(), labels.tolist())

    wanted = {"hours": tf.TensorSpec([], tf.int32), "day": tf.TensorSpec([], tf.string)}
    for batch in tf.data.Dataset.from_json_lines(f"{folder}/*.jsonl", wanted).skip(6).batch(4):
        print("JSON lines", batch["hours"].tolist(), batch["day"].tolist())

    if importlib.util.find_spec("pyarrow"):
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.Table.from_pylist(ROWS), f"{folder}/sales.parquet", row_group_size=4)
        rows = tf.data.Dataset.from_parquet(f"{folder}/sales.parquet", filter=[("hours", ">", 6)])
        for row in rows:
            print("Parquet", int(row["hours"]), row["day"].item(), float(row["sold"]))
