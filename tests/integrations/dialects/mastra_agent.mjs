// An agent of Mastra's that searches by a tool.

import { createOpenAI } from "@ai-sdk/openai";
import { Mastra } from "@mastra/core";
import { Agent } from "@mastra/core/agent";
import { createTool } from "@mastra/core/tools";
import { Observability } from "@mastra/observability";
import { OtelExporter } from "@mastra/otel-exporter";
import { z } from "zod";
import { INSTRUCTION, QUESTION, SESSION, search } from "./shelf.mjs";

const tool = createTool({
  id: "search",
  description: "Searches what is known of rivers.",
  inputSchema: z.object({ query: z.string() }),
  execute: async ({ query }) => ({ documents: search(query) }),
});
const openai = createOpenAI({ baseURL: process.env.MODEL_URL, apiKey: "none" });
const agent = new Agent({
  id: "rivers",
  name: "rivers",
  instructions: INSTRUCTION,
  model: openai.chat("scripted"),
  tools: { search: tool },
});
const exporter = new OtelExporter({
  provider: { custom: { endpoint: process.env.TRACES_URL, protocol: "http/json" } },
});
const observability = new Observability({
  configs: { otel: { serviceName: "rivers", exporters: [exporter] } },
});
const mastra = new Mastra({ agents: { rivers: agent }, observability });

await mastra.getAgent("rivers").generate(QUESTION, {
  tracingOptions: { metadata: { sessionId: SESSION } },
});
await mastra.shutdown();
