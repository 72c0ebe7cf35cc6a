"""What verdicts say about rows."""

from pcs_annotator.core.events import Queue, Reviewed, Verdict, audit_order, fixed_order, frame_hash


def verdict(
    number: int, label: str | None, reviewer: str = "anna", *, row: str = "1", queue: Queue = "learn"
) -> Verdict:
    return Verdict(
        number=number, id=row, text_hash="h", label=label, reviewer=reviewer, at="2026-11-16T08:00:00Z", queue=queue
    )


def test_the_last_verdict_of_a_reviewer_counts() -> None:
    found = Reviewed.of([verdict(1, "good"), verdict(2, "bad")])
    assert (found.label, found.in_conflict) == ("bad", False)


def test_reviewers_who_differ_are_in_conflict_until_someone_settles_it() -> None:
    both = [verdict(1, "good"), verdict(2, "bad", "ben")]
    assert (Reviewed.of(both).label, Reviewed.of(both).in_conflict) == (None, True)
    settled = Reviewed.of([*both, verdict(3, "good", "carla", queue="conflicts")])
    assert (settled.label, settled.in_conflict) == ("good", False)


def test_a_skipped_row_has_no_label_and_contradicts_nobody() -> None:
    assert Reviewed.of([verdict(1, None)]).label is None
    assert Reviewed.of([verdict(1, "good"), verdict(2, None, "ben")]).label == "good"


def test_the_fixed_order_depends_on_each_id_alone() -> None:
    ids = [str(row) for row in range(100)]
    order = fixed_order(ids)
    assert sorted(order) == sorted(ids) != order
    assert fixed_order(reversed(ids)) == order
    assert fixed_order(ids[:50]) == [name for name in order if int(name) < 50]


def test_audits_begin_at_the_end_of_the_fixed_order() -> None:
    ids = [str(row) for row in range(100)]
    assert audit_order(ids) == [*reversed(fixed_order(ids))]


def test_a_frame_is_known_by_its_ids_in_any_order() -> None:
    assert frame_hash(["a", "b"]) == frame_hash(["b", "a"]) != frame_hash(["ab"])
