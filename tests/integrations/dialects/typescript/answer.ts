import { openai } from "@ai-sdk/openai";
import { generateText, isStepCount, tool } from "ai";
import { z } from "zod";
import { provider } from "./tracing";

const texts = [
  "The Drava rises in South Tyrol and is 725 kilometres long, and flows into the Danube.",
  "The Mura rises in the Hohe Tauern, and flows into the Drava near Legrad.",
];
const search = tool({
  description: "Searches what is known of rivers.",
  inputSchema: z.object({ query: z.string() }),
  execute: async ({ query }) =>
    texts.filter((text) => query.split(" ").some((word) => text.includes(word))),
});

const { text } = await generateText({
  model: openai.chat("gpt-4o-mini"),
  system: "Search first. Answer from what was found alone.",
  prompt: "How long is the Drava?",
  tools: { search },
  stopWhen: isStepCount(3),
  telemetry: { functionId: "rivers", includeRuntimeContext: { sessionId: true } },
  runtimeContext: { sessionId: "session-7" },
});
console.log(text);
await provider.forceFlush();
