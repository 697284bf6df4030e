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

let options = {
  experimental_telemetry: {
    isEnabled: true,
    functionId: "answer",
    metadata: { sessionId: SESSION },
    recordInputs: !process.env.SILENT,
    recordOutputs: !process.env.SILENT,
  },
};
if (ai.registerTelemetry) {
  // Release 7 and later: one telemetry for all calls, and the session in the context of each.
  const { LegacyOpenTelemetry, OpenTelemetry } = await import("@ai-sdk/otel");
  const Telemetry = process.env.LEGACY ? LegacyOpenTelemetry : OpenTelemetry;
  ai.registerTelemetry(new Telemetry({ runtimeContext: true }));
  options = {
    telemetry: { functionId: "answer", includeRuntimeContext: { sessionId: true } },
    runtimeContext: { sessionId: SESSION },
  };
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
