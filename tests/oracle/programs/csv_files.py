"""CSV files: what becomes of their records, the wrong ones among them, and what `make_csv_dataset` finds out."""

import os
import tempfile
from pathlib import Path


def records(tf, ask):
    i, s, f = tf.int32, tf.string, tf.float32
    return {
        "two numbers": _read(tf, b"1,2\n3,4\n", [i, i]),
        "an empty line": _read(tf, b"1,2\n3,4\n\n5,6", [i, i]),
        "an empty line of one field": _read(tf, b"1\n\n2\n", [[7]]),
        "an empty line without default": _read(tf, b"1\n\n2\n", [i]),
        "too many, too few": _read(tf, b"1,2,3\n3\n5,6\n", [i, i]),
        "quotes": _read(tf, b'a"b,c\n"x""y",z\n"q"w,e\n"a\nb",2\n"a"\n', [s, s]),
        "more quotes": _read(tf, b'"",a\n"""",b\n"a"""\n"\r\n,",c\n', [s, s]),
        "an open quote": _read(tf, b'1,2\n"open,1\n2,3\n', [s, s]),
        "a blank behind a quote": _read(tf, b'a,b\n"x" ,1\n"y",2\n', [s, s]),
        "all ends of lines": _read(tf, b"a,b\rc,d\r\ne,f\r\r\ng,h", [s, s]),
        "defaults": _read(tf, b"a,\n,b\n,", [["D"], ["E"]]),
        "missing values": _read(tf, b'a,NA\nNA,b\n"NA",', [["D"], ["E"]], na_value="NA"),
        "nothing": _read(tf, b"", [s]),
        "bytes": _read(tf, b"\xff\na\0b\n", [s]),
        "a header": _read(tf, b"h1,h2\n1,2\n", [i, i], header=True),
        "a header alone": _read(tf, b"h1\n", [i], header=True),
        "no header": _read(tf, b"", [i], header=True),
        "a header of two lines": _read(tf, b'"h\n1",b\n1,2\n', [i, i], header=True),
        "a wrong header": _read(tf, b'x"y\n1\n', [i], header=True),
        "an open header": _read(tf, b'"x\n1\n', [i], header=True),
        "a wider header": _read(tf, b"a,b,c\n1\n", [i], header=True),
        "selected": _read(tf, b"a,1,b\nc,x,d\n", [s, s], select_cols=[0, 2]),
        "selected, too few": _read(tf, b"a,1,b\nc\ne,2\n", [s, s], select_cols=[0, 2]),
        "selected, wrong elsewhere": _read(tf, b'a,"q"q",b\n', [s, s], select_cols=[0, 2]),
        "excluded": _read(tf, b"a,1,b,zz\n", [s, s], exclude_cols=[1, 3]),
        "excluded, too few": _read(tf, b"a,1,b,zz\n", [s, s], exclude_cols=[1]),
        "another delimiter": _read(tf, b"a;1\n", [s, i], field_delim=";"),
        "a tab": _read(tf, b"a b\t1\n", [s, i], field_delim="\t"),
        "quotes that mean nothing": _read(tf, b'"a",1\n', [s, i], use_quote_delim=False),
        "several wrong": _read(tf, b'1,x,"z"z"\n3,4,5\n', [i, i, s]),
        "by name": _read(tf, b"1.5,2\n", ["float32", f]),
    }


def numbers(tf, ask):
    whole = b" 1|1 |+1|-1|1_0|1.0|0x10|2147483647|2147483648|-2147483648|1e3|\t5|--1|007|- 1|x"
    parts = (
        b" 1.5|1.5 |+1|1_0|nan|NaN|inf|-Infinity|INF|0x1p3|0x10|1e400|1e39|1e-50|.5|5.|1e|1d3|nan(1)|"
        b"infin|1f|16777217.0000001|\t1.5|+inf|\x0b1.5|1.5\x0c|.|e5|1,5"
    )
    long = b"9223372036854775807|9223372036854775808|-9223372036854775808|3"
    fields = [(whole, tf.int32), (long, tf.int64), (parts, tf.float32), (parts, tf.float64)]
    return {
        f"{field!r} as {place}": _read(tf, field + b"\n", [dtype])
        for place, (text, dtype) in enumerate(fields)
        for field in text.split(b"|")
    }


def arguments(tf, ask):
    i, s = tf.int32, tf.string
    make = tf.data.experimental.CsvDataset
    return {
        "long delimiter": ask(make, "x", [s], field_delim=",,"),
        "no delimiter": ask(make, "x", [s], field_delim=""),
        "selected backwards": ask(make, "x", [s, i], select_cols=[1, 0]),
        "selected twice": ask(make, "x", [s, i], select_cols=[0, 0]),
        "selected below 0": ask(make, "x", [s, i], select_cols=[-1, 0]),
        "selected too few": ask(make, "x", [s, i], select_cols=[0]),
        "selected and excluded": ask(make, "x", [s, i], select_cols=[0, 1], exclude_cols=[2]),
        "no columns": ask(make, "x", []),
        "bools": ask(make, "x", [tf.bool]),
        "a bool": ask(make, "x", [[True]]),
        "two defaults": ask(make, "x", [["x", "y"]]),
        "no list": ask(make, "x", i),
        "compression": ask(make, "x", [i], compression_type="ZIP"),
        "no buffer": ask(make, "x", [i], buffer_size=0),
        "spec": ask(lambda: make("x", [i, ["a"], [1.5], tf.int64, tf.float64]).element_spec),
        "cardinality": ask(lambda: int(make("x", [i]).cardinality())),
        "repr": ask(lambda: repr(make("x", [i]))),
    }


def batches(tf, ask):
    data = b"a,b,c,d\n1,0.5,x,3000000000\n2,,y z,4\n,1e39,,5\n"
    numbers = b"".join(b"%d,%d\n" % (n, n * n) for n in range(5))
    return {
        "guessed": _made(tf, ask, [data], 2),
        "a label": _made(tf, ask, [data], 2, label_name="b"),
        "selected": _made(tf, ask, [data], 3, select_columns=["c", "a"]),
        "selected by number": _made(tf, ask, [data], 3, select_columns=[3, 0], label_name="d"),
        "given": _made(tf, ask, [data], 3, column_defaults=[tf.string, [0.25], ["-"], tf.int64]),
        "missing": _made(tf, ask, [b"a,b\n1,NA\nNA,x\n"], 3, na_value="NA"),
        "names given": _made(tf, ask, [numbers], 2, column_names=["n", "s"], header=False),
        "many files": _made(tf, ask, [b"a\n1\n", b"a\n2\n3\n"], 2),
        "two epochs": _made(tf, ask, [b"a\n1\n2\n3\n"], 2, num_epochs=2),
        "one row tells": _made(tf, ask, [b"a\n1\n2.5\n"], 1, num_rows_for_inference=1),
        "without errors": _made(
            tf, ask, [b"a\n1\nx\n3\n"], 5, column_defaults=[[0]], ignore_errors=True
        ),
        "words that are numbers": _made(tf, ask, [b"a,b,c,d\nnan,inf,-inf,1e999\n"], 2),
        "another header": _made(tf, ask, [b"a\n1\n", b"b\n2\n3\n"], 2),
        "the same name twice": _made(tf, ask, [b"a,a\n1,2\n"], 2),
        "no header": _made(tf, ask, [numbers], 2, header=False),
        "an empty file": _made(tf, ask, [b""], 2),
        "too few fields": _made(tf, ask, [b"a,b\n1\n"], 2),
        "no such label": _made(tf, ask, [data], 2, label_name="x"),
        "no such column": _made(tf, ask, [data], 2, select_columns=["x"]),
        "no such number": _made(tf, ask, [data], 2, select_columns=[9]),
        "a column twice": _made(tf, ask, [data], 2, select_columns=["a", 0]),
        "too few defaults": _made(
            tf, ask, [data], 2, select_columns=["a", "b"], column_defaults=[[1]]
        ),
        "no files": ask(tf.data.experimental.make_csv_dataset, "/none/*.csv", 2),
    }


def _read(tf, data, defaults, **how):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "file.csv")
        Path(path).write_bytes(data)
        iterator = iter(tf.data.experimental.CsvDataset(path, defaults, **how))
        return [_next(tf, iterator) for _ in range(7)]


def _next(tf, iterator):
    try:
        return next(iterator)
    except StopIteration:
        return "the end"
    except tf.errors.OpError as error:
        return type(error).__name__


def _made(tf, ask, files, size, **how):
    how = {"shuffle": False, "num_epochs": 1} | how
    with tempfile.TemporaryDirectory() as folder:
        for number, data in enumerate(files):
            (Path(folder) / f"{number}.csv").write_bytes(data)
        return ask(lambda: _batches(tf, folder + "/*.csv", size, how))


def _batches(tf, pattern, size, how):
    dataset = tf.data.experimental.make_csv_dataset(pattern, size, **how)
    return [dataset.element_spec, list(dataset)]
