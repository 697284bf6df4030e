"""What every program here asks, and what it searches."""

QUESTION = "How long is the Drava?"
SESSION = "session-7"
TEXTS = {
    "drava": "The Drava rises in South Tyrol and is 725 kilometres long, "
    "and flows into the Danube.",
    "sava": "The Sava is a river of the western Balkans, and flows into the Danube in Belgrade.",
    "mura": "The Mura rises in the Hohe Tauern, and flows into the Drava near Legrad.",
}
INSTRUCTION = "Answer from the context alone."


def search(query: str) -> list[tuple[str, str]]:
    """Return id and text of the two texts that share the most words with a query."""
    asked = {*query.lower().strip("?").split()}
    by_words = sorted(TEXTS.items(), key=lambda each: -len(asked & {*each[1].lower().split()}))
    return by_words[:2]


def prompt_of(question: str, texts: list[str]) -> str:
    """Return the prompt that a model answers a question with."""
    return f"{INSTRUCTION}\n\nContext:\n" + "\n\n".join(texts) + f"\n\nQuestion: {question}"
