// A RAG chain of LangChain.js's that OpenInference traces.

import { LangChainInstrumentation } from "@arizeai/openinference-instrumentation-langchain";
import * as callbacks from "@langchain/core/callbacks/manager";
import { Document } from "@langchain/core/documents";
import { StringOutputParser } from "@langchain/core/output_parsers";
import { ChatPromptTemplate } from "@langchain/core/prompts";
import { BaseRetriever } from "@langchain/core/retrievers";
import { RunnablePassthrough, RunnableSequence } from "@langchain/core/runnables";
import { FakeListChatModel } from "@langchain/core/utils/testing";
import { ANSWER, INSTRUCTION, QUESTION, SESSION, search } from "./shelf.mjs";
import { provider } from "./traced.mjs";

new LangChainInstrumentation({ tracerProvider: provider }).manuallyInstrument(callbacks);

class Shelf extends BaseRetriever {
  lc_namespace = ["shelf"];

  async _getRelevantDocuments(query) {
    return search(query).map(({ id, text }) => new Document({ id, pageContent: text }));
  }
}

const joined = (found) => found.map((each) => each.pageContent).join("\n");
const chain = RunnableSequence.from([
  { context: new Shelf().pipe(joined), question: new RunnablePassthrough() },
  ChatPromptTemplate.fromMessages([
    ["system", INSTRUCTION],
    ["user", "{context}\n\n{question}"],
  ]),
  new FakeListChatModel({ responses: [ANSWER] }),
  new StringOutputParser(),
]);
await chain.invoke(QUESTION, { metadata: { session_id: SESSION } });
await provider.forceFlush();
