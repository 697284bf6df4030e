// The Vercel AI SDK: a model that searches by a tool, and one that is given the texts in its prompt.

import * as ai from "ai";
import * as testing from "ai/test";
import { z } from "zod";
import { ANSWER, INSTRUCTION, QUESTION, SESSION, search } from "./shelf.mjs";
import { provider } from "./traced.mjs";

const usage = process.env.SPEC === "v4"
  ? { inputTokens: { total: 50 }, outputTokens: { total: 10 } }
  : { inputTokens: 50, outputTokens: 10, totalTokens: 60 };
const finished = (reason) => (process.env.SPEC ? { unified: reason, raw: reason } : reason);
const text = {
  content: [{ type: "text", text: ANSWER }],
  finishReason: finished("stop"),
  usage,
  warnings: [],
};
const call = {
  content: [
    {
      type: "tool-call",
      toolCallId: "call_1",
      toolName: "search",
      input: JSON.stringify({ query: "Drava length" }),
    },
  ],
  finishReason: finished("tool-calls"),
  usage,
  warnings: [],
};
const Model = testing.MockLanguageModelV4 ?? testing.MockLanguageModelV3;
const scripted = (...replies) =>
  new Model({ modelId: "scripted", doGenerate: async () => replies.shift() });

const told = { isEnabled: true, functionId: "answer", metadata: { sessionId: SESSION } };
let options = { experimental_telemetry: told };
if (ai.registerTelemetry) {
  const { LegacyOpenTelemetry, OpenTelemetry } = await import("@ai-sdk/otel");
  ai.registerTelemetry(process.env.LEGACY ? new LegacyOpenTelemetry() : new OpenTelemetry());
  options = { telemetry: told };
}

if (process.env.WITH === "tool") {
  await ai.generateText({
    ...options,
    model: scripted(call, text),
    system: INSTRUCTION,
    prompt: QUESTION,
    stopWhen: ai.stepCountIs?.(3) ?? ai.isStepCount(3),
    tools: {
      search: ai.tool({
        description: "Searches the texts.",
        inputSchema: z.object({ query: z.string() }),
        execute: async ({ query }) => search(query),
      }),
    },
  });
} else {
  const context = search(QUESTION).map((each) => each.text).join("\n\n");
  await ai.generateText({
    ...options,
    model: scripted(text),
    system: INSTRUCTION,
    prompt: `Context:\n${context}\n\nQuestion: ${QUESTION}`,
  });
}
await provider.forceFlush();
