from pathlib import Path

import pytest

from pcs_annotator.core.ledger_address import absolute_address, on_server, without_password


@pytest.mark.parametrize(
    ("address", "server"),
    [
        ("postgresql://host/db", True),
        ("Postgres://host/db", True),
        ("postgresql.db", False),
        (Path("postgresql://host/db"), False),
    ],
)
def test_only_a_text_that_begins_like_an_address_is_one(address: Path | str, server: bool) -> None:
    assert on_server(address) is server


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("postgresql://host:5432/db", "postgresql://host:5432/db"),
        ("postgresql://me@host/db", "postgresql://me@host/db"),
        ("postgresql://me:secret@host/db", "postgresql://me@host/db"),
        ("postgresql://me:sec@ret@host:5/db", "postgresql://me@host:5/db"),
        ("postgresql://me:sec?ret@host/db", "postgresql://me@host/db"),
        ("postgresql://me:se@cr/et@host/db?sslmode=require", "postgresql://me@host/db?sslmode=require"),
        ("postgresql://host:5432/db?application_name=a@b", "postgresql://host:5432/db?application_name=a@b"),
        ("postgresql://:secret@host/db", "postgresql://@host/db"),
        ("postgresql:///db?host=/tmp&password=secret", "postgresql:///db?host=/tmp"),
        ("postgresql://h/db?password=secret", "postgresql://h/db"),
        ("postgresql://h/db?sslpassword=secret&sslmode=require", "postgresql://h/db?sslmode=require"),
        ("folder/a:secret@b.db", "folder/a:secret@b.db"),
    ],
)
def test_an_address_is_shown_without_its_password(address: str, shown: str) -> None:
    assert without_password(address) == shown


def test_only_a_file_is_made_absolute() -> None:
    assert absolute_address("a.db") == Path.cwd() / "a.db"
    assert absolute_address("postgresql://host/db") == "postgresql://host/db"
