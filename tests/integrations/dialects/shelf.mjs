// What every program here asks, and what it searches; as in shelf.py.

export const QUESTION = "How long is the Drava?";
export const SESSION = "session-7";
export const ANSWER = "The Drava is 725 kilometres long.";
export const INSTRUCTION = "Answer from the context alone.";
const TEXTS = {
  drava: "The Drava rises in South Tyrol and is 725 kilometres long, and flows into the Danube.",
  sava: "The Sava is a river of the western Balkans, and flows into the Danube in Belgrade.",
  mura: "The Mura rises in the Hohe Tauern, and flows into the Drava near Legrad.",
};

const words = (text) => new Set(text.toLowerCase().replace("?", "").split(/\s+/));

/** Returns the two texts that share the most words with a query. */
export function search(query) {
  const asked = words(query);
  const shared = ([, text]) => [...words(text)].filter((word) => asked.has(word)).length;
  const ranked = Object.entries(TEXTS).sort((a, b) => shared(b) - shared(a));
  return ranked.slice(0, 2).map(([id, text]) => ({ id, text }));
}
