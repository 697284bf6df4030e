"""What is remembered of words: as much as there is room for, and the same as was worked out."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import count, islice

from hypothesis import given
from hypothesis import strategies as st

from claimspan.text.memo import Memo, MemoByLanguage
from claimspan.text.words import Token, tokenize


def words(prefix: str, n: int) -> list[str]:
    return [f"{prefix}{i}" for i in range(n)]


def test_a_memo_works_a_result_out_once() -> None:
    calls = count()
    memo = Memo(lambda word: f"{word}{next(calls)}", 10)

    assert [memo["a"], memo["b"], memo["a"]] == ["a0", "b1", "a0"]


def test_a_memo_keeps_no_more_results_than_it_may() -> None:
    memo = Memo(str.upper, 100)
    for word in words("w", 1_000):
        assert memo[word] == word.upper()
        assert len(memo) <= 100


def test_the_memos_of_all_languages_keep_no_more_results_together_than_they_may() -> None:
    memos = MemoByLanguage(lambda language, word: f"{language} {word}", 100)
    for word in words("w", 200):
        for language in ("en", "sl", "de", "fr", "it"):
            assert memos[language][word] == f"{language} {word}"
            assert memos.size <= 100


def test_names_of_languages_that_never_end_are_not_kept() -> None:
    memos = MemoByLanguage(lambda language, word: f"{language} {word}", 1_000_000)
    for language in words("x", 1_000):
        assert memos[language]["a"] == f"{language} a"
    assert len(memos) <= 64


def test_neither_the_result_of_a_long_word_nor_a_long_result_is_kept() -> None:
    memo = Memo(tuple, 100)

    assert memo["a" * 41] == tuple("a" * 41)
    assert memo["abcde"] == tuple("abcde")
    assert memo["abcd"] == tuple("abcd")
    assert list(memo) == ["abcd"]


def test_threads_share_a_memo_that_is_full_all_the_time() -> None:
    memos = MemoByLanguage(lambda language, word: f"{language} {word}", 50)

    def read(thread: int) -> bool:
        language = f"x{thread % 3}"
        return all(memos[language][word] == f"{language} {word}" for word in words("w", 5_000))

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(read, range(8)))
    assert memos.size <= 58  # each of eight threads may have kept one meanwhile


_PIECES = st.text(alphabet="abzAZ019.,'’-%$(*)_/é中文\u0301\u200b", min_size=1, max_size=8)


@given(st.lists(_PIECES, max_size=6), st.sampled_from(["en", "fr", "sl", "zh"]))
def test_the_tokens_of_a_text_are_those_of_its_pieces_between_blanks(
    pieces: list[str], language: str
) -> None:
    def tokens(text: str) -> list[Token]:
        return tokenize(text, language)

    assert tokens(" ".join(pieces)) == [token for piece in pieces for token in tokens(piece)]


def test_a_text_of_more_different_words_than_are_remembered_is_read_like_any() -> None:
    numbered = (f"w{i}x." for i in count())
    text = " ".join(islice(numbered, 25_000))

    assert [token.text for token in tokenize(text)] == [piece[:-1] for piece in text.split()]


def test_a_word_that_keeps_coming_is_worked_out_once_however_many_others_come() -> None:
    asked = list[str]()

    def noted(word: str) -> str:
        asked.append(word)
        return word

    memo = Memo(noted, 100)
    for word in words("w", 1_000):
        assert (memo[word], memo["the"]) == (word, "the")
    assert asked.count("the") == 1


def test_a_memo_counts_what_it_has_set_aside() -> None:
    memo = Memo(str.upper, 100)
    for word in words("w", 1_000):
        assert memo[word] == word.upper()
        assert memo.size <= 100
    assert memo.size > 50
