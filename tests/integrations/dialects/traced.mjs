// Sends the spans of a program by OTLP to TRACES_URL.

import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { NodeTracerProvider, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-node";

export const provider = new NodeTracerProvider({
  spanProcessors: [new SimpleSpanProcessor(new OTLPTraceExporter({ url: process.env.TRACES_URL }))],
});
provider.register({ contextManager: new AsyncLocalStorageContextManager().enable() });
