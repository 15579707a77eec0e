"""Stores of the first schema: upgraded when they are opened for writing, read as they are otherwise."""

import json
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from ncttt.benchmark import Store, read_rows
from ncttt.benchmark.rows import COLUMNS

MEASURED = [("a", "episodic", "random"), ("b", "mixed", "random"), ("c", "mixed", "dirichlet(0.1)")]
NOW = {"a": ("episodic", "random"), "b": ("continual", "mixed"), "c": ("continual", "mixed(dirichlet(0.1))")}


@pytest.fixture
def old(tmp_path) -> Path:
    """A store as it was written when the digest of images was called `pictures` and mixed streams were a protocol."""
    path = tmp_path / "old.sqlite"
    with Store(path) as store:
        for key, protocol, order in MEASURED:
            row = {"key": key, "images": 2, "images_digest": f"digest of {key}", "protocol": protocol, "order": order}
            needed = {"corruption": "fog", "method": "m", "seed": 0, "accuracy": 0.5, "ece": 0.1}
            right = np.array([[True, False]])
            store.write(row | needed | {"images_per_second": 9.0}, np.array([[1, 2]]), right)
    base = sqlite3.connect(path)
    base.execute("ALTER TABLE rows RENAME COLUMN images_digest TO pictures")
    base.execute("DROP INDEX rows_by_scenario")
    base.execute("CREATE INDEX rows_by_scene ON rows (data, corruption, severity, method)")
    cell = {"method": "tent", "pictures": "abc", "protocol": "mixed", "order": "random"}
    base.execute("INSERT INTO failures VALUES ('d', ?, 'out of luck')", (json.dumps(cell),))
    base.execute("PRAGMA user_version = 1")
    base.commit()
    base.close()
    return path


def version(path: Path) -> int:
    base = sqlite3.connect(path)
    (number,) = base.execute("PRAGMA user_version").fetchone()
    base.close()
    return number


def check(store: Store) -> None:
    rows = {row["key"]: row for row in store.rows()}
    assert {key: (row["protocol"], row["order"]) for key, row in rows.items()} == NOW
    assert {row["images_digest"] for row in rows.values()} == {"digest of a", "digest of b", "digest of c"}
    assert all(list(row) == list(COLUMNS) for row in rows.values())
    assert [row["key"] for row in store.rows(images_digest="digest of b")] == ["b"]
    assert [row["key"] for row in store.rows(protocol="continual", order=["mixed", "mixed(by_class)"])] == ["b"]
    assert store.by_key(["c"])["c"]["order"] == "mixed(dirichlet(0.1))"
    assert store.right("b").tolist() == [[True, False]]
    assert store.done() == store.done(predictions=True) == {"a", "b", "c"}
    (failure,) = store.failures()
    assert failure["cell"] == {
        "method": "tent", "images_digest": "abc", "protocol": "continual", "order": "mixed",
    }  # fmt: skip


def test_an_old_store_is_upgraded_when_it_is_opened_for_writing(old):
    with Store(old) as store:
        check(store)
        store.write({"key": "e", "images_digest": "new"})
    assert version(old) == 2
    with Store(old, read_only=True) as store:
        assert [row["key"] for row in store.rows(images_digest="new")] == ["e"]


def test_an_old_store_that_is_only_read_is_left_as_it_is(old):
    before = old.read_bytes()
    with Store(old, read_only=True) as store:
        check(store)
    assert [row["key"] for row in read_rows(old)] == ["a", "b", "c"]
    assert old.read_bytes() == before
    assert version(old) == 1


def test_an_upgrade_happens_whole_or_not_at_all(old):
    base = sqlite3.connect(old)
    base.execute("DROP INDEX rows_by_scene")  # so that a later statement of the upgrade fails
    base.commit()
    base.close()
    with pytest.raises(ValueError, match="cannot use the store"):
        Store(old)
    assert version(old) == 1
    with Store(old, read_only=True) as store:
        check(store)


def test_old_csv_files_are_read_under_the_new_names(old, tmp_path):
    with Store(old) as store:
        store.export(tmp_path / "new.csv")
        rows = store.rows()
    text = (tmp_path / "new.csv").read_text().replace("images_digest", "pictures")
    text = text.replace("continual,mixed(dirichlet(0.1))", "mixed,dirichlet(0.1)").replace(
        "continual,mixed", "mixed,random"
    )
    (tmp_path / "old.csv").write_text(text)
    assert read_rows(tmp_path / "old.csv") == rows
    with Store(tmp_path / "seeded.sqlite") as seeded:
        assert seeded.seed(tmp_path / "old.csv") == 3
        assert seeded.rows() == rows
