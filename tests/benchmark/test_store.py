"""The store: whole rows or none, nothing overwritten unasked, quick with many rows."""

import csv
import json
import os
import sqlite3
import time
from collections.abc import Callable, Sized

import numpy as np
import pytest
from pyarrow import parquet

import small_grid
from ncttt import InputError
from ncttt.benchmark import Store, cells_of, run_cells
from ncttt.benchmark.rows import COLUMNS
from ncttt.benchmark.schema import transaction


def test_a_second_run_measures_nothing_and_force_measures_again(checkpoint, store):
    cells = cells_of(small_grid.grid(checkpoint))
    asked = []

    class Counting:
        def run(self, work, tasks):
            asked.append(len(tasks))
            return ((task, work(task)) for task in tasks)

    first = run_cells(cells, store, Counting())
    again = run_cells(cells, store, Counting())
    forced = run_cells(cells, store, Counting(), force=True)
    assert asked == [6, 0, 6]
    assert first.rows == again.rows
    assert small_grid.facts(first.rows) == small_grid.facts(forced.rows)
    assert [row["method"] for row in first.rows[:3]] == ["source", "ptbn", "NC-TTT"]


def test_predictions_come_back_as_they_were(checkpoint, store):
    cells = cells_of(small_grid.grid(checkpoint))
    run_cells(cells, store)
    key = cells[2].key
    predicted, right = store.predicted(key), store.right(key)
    assert predicted.shape == right.shape == (2, 120)
    (row,) = store.rows(key=key)
    assert right[-1].mean() == pytest.approx(row["accuracy"])
    assert right[0].mean() == pytest.approx(json.loads(row["accuracy_at"])["0"])
    assert store.right("nobody") is None


def test_more_than_256_classes_fit(store):
    predicted = np.array([[0, 255, 256, 999]])
    store.write({"key": "a", "images": 4}, predicted, predicted > 255)
    assert (store.predicted("a") == predicted).all()
    assert (store.right("a") == (predicted > 255)).all()


def test_a_row_is_written_whole_or_not_at_all(store):
    store.write({"key": "a", "images": 2, "accuracy": 0.5}, np.array([[1, 2]]), np.array([[True, False]]))
    with pytest.raises(TypeError):
        store.write({"key": "a", "images": 2, "accuracy": 0.9}, np.array([[1, 2]]), object())
    assert store.rows()[0]["accuracy"] == 0.5
    assert store.rows(accuracy=0.9) == []


def test_csv_there_and_back_is_exact(checkpoint, store, tmp_path):
    rows = run_cells(cells_of(small_grid.grid(checkpoint)), store).rows
    assert store.export(tmp_path / "rows.csv") == 6
    with Store(tmp_path / "other.sqlite") as other:
        assert other.seed(tmp_path / "rows.csv") == 6
        assert other.seed(tmp_path / "rows.csv") == 0
        assert other.rows() == store.rows()
        again = run_cells(cells_of(small_grid.grid(checkpoint)), other, executor=None)
        assert again.rows == rows  # nothing was measured: the timings are the same, too


def test_parquet_has_typed_columns(checkpoint, store, tmp_path):
    run_cells(cells_of(small_grid.grid(checkpoint)), store)
    store.export(tmp_path / "rows.parquet")
    assert parquet.read_table(tmp_path / "rows.parquet").to_pylist() == store.rows()


def test_exports_that_cannot_be_are_told(store, tmp_path):
    with pytest.raises(InputError, match=r"\.csv or \.parquet; found rows\.txt"):
        store.export("rows.txt")
    (tmp_path / "bad.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match="no export of a store: it has no column 'key'"):
        store.seed(tmp_path / "bad.csv")
    with (tmp_path / "worse.csv").open("w") as file:
        writer = csv.DictWriter(file, list(COLUMNS))
        writer.writeheader()
        facts = {
            "key": "a",
            "corruption": "fog",
            "method": "m",
            "images": 3,
            "seed": 0,
            "ece": 0,
            "images_per_second": 1,
        }
        writer.writerow(facts | {"accuracy": "much"})
    with pytest.raises(InputError, match="line 2, accuracy: 'much' is no number"):
        store.seed(tmp_path / "worse.csv")
    (tmp_path / "short.csv").write_text((tmp_path / "worse.csv").read_text().replace("much", ""))
    with pytest.raises(InputError, match="line 2: accuracy is missing"):
        store.seed(tmp_path / "short.csv")
    (tmp_path / "binary.csv").write_bytes(b"PAR1\xff\xfe\x00")
    with pytest.raises(InputError, match="is no CSV"):
        store.seed(tmp_path / "binary.csv")
    assert store.rows() == []


def test_rows_without_predictions_are_measured_again_where_those_are_needed(checkpoint, store, tmp_path):
    cells = cells_of(small_grid.grid(checkpoint))
    rows = run_cells(cells, store).rows
    store.export(tmp_path / "rows.csv")
    with Store(tmp_path / "seeded.sqlite") as seeded:
        seeded.seed(tmp_path / "rows.csv")
        assert seeded.right(cells[0].key) is None
        again = run_cells(cells, seeded, predictions=True).rows
        assert small_grid.facts(again) == small_grid.facts(rows)
        assert (seeded.right(cells[0].key) == store.right(cells[0].key)).all()


def test_a_missing_value_can_be_asked_for(store):
    store.write({"key": "a", "stop": None})
    store.write({"key": "b", "stop": "source"})
    assert [row["key"] for row in store.rows(stop=None)] == ["a"]
    assert [row["key"] for row in store.rows(stop=[None, "source"])] == ["a", "b"]


def test_files_that_are_no_store_are_left_alone(tmp_path):
    path = tmp_path / "text.sqlite"
    path.write_text("not a database, but long enough to look at its header, which has to be a hundred bytes " * 3)
    before = path.read_bytes()
    with pytest.raises(InputError, match="file is not a database"):
        Store(path)
    assert path.read_bytes() == before

    path = tmp_path / "other.sqlite"
    base = sqlite3.connect(path)
    base.execute("CREATE TABLE pets (name)")
    base.commit()
    base.close()
    with pytest.raises(InputError, match="no store of rows; it is left as it is"):
        Store(path)

    path = tmp_path / "old.sqlite"
    Store(path).close()
    base = sqlite3.connect(path)
    base.execute("PRAGMA user_version = 0")
    base.close()
    before = path.read_bytes()
    with pytest.raises(InputError, match="a store of schema 0; this version reads 1 and 2"):
        Store(path)
    assert path.read_bytes() == before


def test_a_store_can_be_read_without_writing(tmp_path):
    with Store(tmp_path / "rows.sqlite") as store:
        store.write({"key": "a", "accuracy": 0.5})
        with Store(tmp_path / "rows.sqlite", read_only=True) as reader:
            assert [row["accuracy"] for row in reader.rows()] == [0.5]
            with pytest.raises(InputError, match="readonly database"):
                reader.write({"key": "b"})
    with pytest.raises(InputError, match="cannot use the store"):
        Store(tmp_path / "nobody.sqlite", read_only=True)
    assert not (tmp_path / "nobody.sqlite").exists()


def test_a_cell_that_failed_and_then_came_from_a_file_is_no_failure(checkpoint, store, tmp_path):
    cells = cells_of(small_grid.grid(checkpoint))
    run_cells(cells, store)
    store.export(tmp_path / "rows.csv")
    with Store(tmp_path / "other.sqlite") as other:
        other.fail(cells[0].key, {"method": "source"}, "out of luck")
        other.seed(tmp_path / "rows.csv")
        assert other.failures() == []


def test_a_place_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises((InputError, OSError), match="file"):
        Store(tmp_path / "file" / "rows.sqlite")
    with pytest.raises(InputError, match="cannot use the store"):
        Store(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write everywhere")
def test_a_folder_without_write_permission_is_told(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(InputError, match="cannot use the store"):
        Store(tmp_path / "rows.sqlite")


def fastest(query: Callable[[], Sized], rows: int) -> float:
    """Seconds of the quickest of three tries."""
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        assert len(query()) == rows
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def test_queries_are_instant_with_100_000_rows(store):
    rows = [
        {"key": f"{n:08d}", "data": "digits", "corruption": f"c{n % 15}", "severity": n % 5, "method": f"m{n % 40}",
         "accuracy": n / 100_000}
        for n in range(100_000)
    ]  # fmt: skip
    with transaction(store._base):
        store._insert(rows)
    store.write(rows[0])
    keys = [row["key"] for row in rows[:1000]]
    by_scenario = fastest(lambda: store.rows(data="digits", corruption="c3", severity=3, method="m3"), 834)
    by_key = fastest(lambda: store.by_key(keys), 1000)
    done = fastest(store.done, 100_000)
    everything = fastest(store.rows, 100_000)
    # Ratios, because the machine may be busy: a query looks at what it asks for, not at all rows.
    assert (by_scenario < everything / 10, by_key < everything / 10, done < everything / 4) == (True, True, True)
    assert everything < 30


def test_unknown_columns_are_told(store):
    with pytest.raises(InputError, match="no column 'pictures'; it is called 'images_digest' now"):
        store.rows(pictures="abc")
    with pytest.raises(InputError, match="ask for protocol='continual', order='mixed'"):
        store.rows(protocol="mixed")
    with pytest.raises(InputError, match="no column 'acuracy'; did you mean 'accuracy'"):
        store.rows(acuracy=1)
