"""Every attribute, span and event name that claimspan writes or reads. No other file has one.

What other dialects call the same, ``claimspan_openinference`` puts into these words as it takes it.

Three vocabularies stand side by side, because each backend reads another one:

* ``gen_ai.*``: OpenTelemetry's semantic conventions for generative AI (Development stability, so
  the strings are kept here and not imported from a package that may rename them).
* OpenInference: what Phoenix, Langfuse and MLflow turn into typed spans with documents.
* ``claimspan.*``: the scores and everything about how they came to be.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

SCOPE: Final = "claimspan"
"""Instrumentation scope of every span of ours."""

# --- span names: ASCII, since one lone surrogate in a name loses the whole batch ---
# Route, store or model follows if it is known: ``chat gpt-4o-mini``.

SPAN_ROOT: Final = "invoke_workflow"
SPAN_RETRIEVER: Final = "retrieval"
SPAN_EVALUATE: Final = "claimspan.evaluate"
"""The claims that scores rest on; and the scores, if they came too late for the root."""
SPAN_DOCTOR: Final = "claimspan.doctor"
"""Sent by ``Monitor.check`` and ``claimspan doctor``, to see whether it arrives."""
SPAN_ANNOTATIONS: Final = "claimspan.annotations"
"""Late scores in OpenInference's form for annotations of a span that has ended."""

# --- gen_ai: OpenTelemetry ---

GEN_AI_OPERATION_NAME: Final = "gen_ai.operation.name"
OPERATION_WORKFLOW: Final = "invoke_workflow"
OPERATION_RETRIEVAL: Final = "retrieval"
OPERATION_CHAT: Final = "chat"
OPERATION_TEXT: Final = "text_completion"
"""The name of the span of a model begins with one of these two."""
OPERATION_CONTENT: Final = "generate_content"
OPERATION_AGENT: Final = "invoke_agent"
OPERATION_TOOL: Final = "execute_tool"
OPERATION_EMBEDDINGS: Final = "embeddings"
OPERATION_RERANK: Final = "rerank"
OPERATION_EVALUATION: Final = "evaluation"
GEN_AI_WORKFLOW_NAME: Final = "gen_ai.workflow.name"
GEN_AI_PROVIDER_NAME: Final = "gen_ai.provider.name"
GEN_AI_DATA_SOURCE_ID: Final = "gen_ai.data_source.id"
GEN_AI_REQUEST_MODEL: Final = "gen_ai.request.model"
GEN_AI_TEMPERATURE: Final = "gen_ai.request.temperature"
GEN_AI_TOP_P: Final = "gen_ai.request.top_p"
GEN_AI_MAX_TOKENS: Final = "gen_ai.request.max_tokens"
GEN_AI_RESPONSE_ID: Final = "gen_ai.response.id"
GEN_AI_RESPONSE_MODEL: Final = "gen_ai.response.model"
GEN_AI_FINISH_REASONS: Final = "gen_ai.response.finish_reasons"
"""List with one entry, as the first completion alone is read."""
GEN_AI_CONVERSATION_ID: Final = "gen_ai.conversation.id"
GEN_AI_RETRIEVAL_QUERY: Final = "gen_ai.retrieval.query.text"
GEN_AI_RETRIEVAL_DOCUMENTS: Final = "gen_ai.retrieval.documents"
"""JSON array of ``{id, score}``, one for each chunk."""
GEN_AI_INPUT_MESSAGES: Final = "gen_ai.input.messages"
GEN_AI_OUTPUT_MESSAGES: Final = "gen_ai.output.messages"
GEN_AI_SYSTEM_INSTRUCTIONS: Final = "gen_ai.system_instructions"
"""JSON arrays: messages of ``{role, parts}``, and the parts of the system message. Content is
opt-in; no span of ours has them."""
GEN_AI_TOOL_RESULT: Final = "gen_ai.tool.call.result"
GEN_AI_USAGE_INPUT_TOKENS: Final = "gen_ai.usage.input_tokens"
GEN_AI_USAGE_OUTPUT_TOKENS: Final = "gen_ai.usage.output_tokens"
ERROR_TYPE: Final = "error.type"
"""Class of the exception; its message stays out, as it may quote a chunk or a key."""

EVENT_EVALUATION: Final = "gen_ai.evaluation.result"
"""Log event, one for each score, on the root span's context; one with an ``error.type`` for an
evaluation that failed."""
GEN_AI_EVALUATION_NAME: Final = "gen_ai.evaluation.name"
GEN_AI_EVALUATION_SCORE: Final = "gen_ai.evaluation.score.value"
GEN_AI_EVALUATION_LABEL: Final = "gen_ai.evaluation.score.label"
"""``good``, ``low`` or ``neutral``."""
GEN_AI_EVALUATION_EXPLANATION: Final = "gen_ai.evaluation.explanation"
"""Why a score is low, in one line; absent if it is not."""
GEN_AI_EVALUATION_TARGET: Final = "gen_ai.evaluation.target"
GEN_AI_EVALUATOR_VERSION: Final = "gen_ai.evaluation.evaluator.version"
"""Both are extensions of pydantic-evals that Logfire reads: the route, and the judge's version."""
EVALUATION_FEEDBACK: Final = "user_feedback"
"""Name of the evaluation that a user makes by saying whether a response was good."""

# --- OpenInference ---

OPENINFERENCE_SPAN_KIND: Final = "openinference.span.kind"
KIND_CHAIN: Final = "CHAIN"
KIND_RETRIEVER: Final = "RETRIEVER"
KIND_LLM: Final = "LLM"
KIND_RERANKER: Final = "RERANKER"
KIND_EMBEDDING: Final = "EMBEDDING"
KIND_AGENT: Final = "AGENT"
KIND_TOOL: Final = "TOOL"
KIND_PROMPT: Final = "PROMPT"
KIND_GUARDRAIL: Final = "GUARDRAIL"
KIND_EVALUATOR: Final = "EVALUATOR"
INPUT_VALUE: Final = "input.value"
OUTPUT_VALUE: Final = "output.value"
"""On a retriever span a JSON array of ``{page_content, metadata, id}``, which MLflow shows as
documents."""
INPUT_MIME_TYPE: Final = "input.mime_type"
OUTPUT_MIME_TYPE: Final = "output.mime_type"
MIME_TEXT: Final = "text/plain"
MIME_JSON: Final = "application/json"
SESSION_ID: Final = "session.id"
USER_ID: Final = "user.id"
TAGS: Final = "tag.tags"
METADATA: Final = "metadata"
"""What the application attached to a run, as JSON.

This and the three before it are also the keys under which ``openinference.instrumentation`` keeps
such values in OpenTelemetry's context."""
SESSION_KEYS: Final = (SESSION_ID, "session_id", "conversation_id", "thread_id")
"""Keys of the metadata under which applications and frameworks keep the id of a conversation."""
USER_KEYS: Final = (USER_ID, "user_id")
"""As above, the id of a user."""
LLM_MODEL_NAME: Final = "llm.model_name"
LLM_PROVIDER: Final = "llm.provider"
LLM_SYSTEM: Final = "llm.system"
"""Whose API is called, as ``openai`` if the provider is ``azure``."""
LLM_PARAMETERS: Final = "llm.invocation_parameters"
"""JSON object of the parameters of a request."""
LLM_TEMPLATE: Final = "llm.prompt_template.template"
"""On a span of kind ``LLM`` that has nothing else of a model it says that a prompt was built."""
LLM_TEMPLATE_VARIABLES: Final = "llm.prompt_template.variables"
LLM_PROMPTS: Final = "llm.prompts"
"""A list of texts in some versions, and in others the beginning of one name for each text."""
LLM_TOKENS_PROMPT: Final = "llm.token_count.prompt"
LLM_TOKENS_COMPLETION: Final = "llm.token_count.completion"


DOCUMENT_PREFIX: Final = "retrieval.documents."
LATE_SCOPES: Final = ("openinference.instrumentation", "opentelemetry.util.genai")
"""How the instrumentation scopes begin whose spans are all those of an AI application, but have
attributes that say so only when they end."""
EVENT_EXCEPTION: Final = "exception"
EVENT_EXCEPTION_TYPE: Final = "exception.type"
EVENT_EXCEPTION_MESSAGE: Final = "exception.message"
"""Event by which a span tells of an exception, and where that has its class."""
NESTED_SCOPES: Final = ("openinference.instrumentation.langchain",)
"""Scopes of spans that end from within: one that is open below shows that a stream was left."""
BUFFERED_ATTRIBUTES: Final = "_self_important_attributes"
"""Attribute of OpenInference's wrapper of a span, which keeps the span's kind until its end."""


@lru_cache(maxsize=256)  # four of each of the documents of a span
def document(index: int, field: str) -> str:
    """Name of a field (``id``, ``content``, ``score``, ``metadata``) of one retrieved chunk."""
    return f"{DOCUMENT_PREFIX}{index}.document.{field}"


def reranked(index: int, field: str) -> str:
    """Name of a field of one document that a reranker let through."""
    return f"reranker.output_documents.{index}.document.{field}"


def reranker_input(index: int, field: str) -> str:
    """Name of a field of one document that a reranker was given."""
    return f"reranker.input_documents.{index}.document.{field}"


def completion_prompt(index: int) -> str:
    """Name of one text that a completion model read."""
    return f"{LLM_PROMPTS}.{index}.prompt.text"


def completion_choice(index: int) -> str:
    """Name of one text that a completion model answered."""
    return f"llm.choices.{index}.completion.text"


MESSAGE_ROLE: Final = "role"
MESSAGE_CONTENT: Final = "content"
MESSAGE_TOOL_CALL: Final = "tool_calls.0.tool_call.function.name"
INPUT_MESSAGE_PREFIX: Final = "llm.input_messages."
OUTPUT_MESSAGE_PREFIX: Final = "llm.output_messages."


def input_message(index: int, field: str) -> str:
    """Name of a field (``role``, ``content``) of one message that a model read."""
    return f"{INPUT_MESSAGE_PREFIX}{index}.message.{field}"


def input_part(index: int, part: int) -> str:
    """Name of the text of one part of a message that a model read."""
    return f"{INPUT_MESSAGE_PREFIX}{index}.message.contents.{part}.message_content.text"


def output_part(index: int, part: int) -> str:
    """Name of the text of one part of a message that a model answered."""
    return f"{OUTPUT_MESSAGE_PREFIX}{index}.message.contents.{part}.message_content.text"


def input_arguments(index: int, call: int) -> str:
    """Name of the JSON that a message which a model read gives one call of a tool."""
    return f"{INPUT_MESSAGE_PREFIX}{index}.message.tool_calls.{call}.tool_call.function.arguments"


def output_arguments(index: int, call: int) -> str:
    """Name of the JSON that a message of a model's gives one call of a tool."""
    return f"{OUTPUT_MESSAGE_PREFIX}{index}.message.tool_calls.{call}.tool_call.function.arguments"


def output_message(index: int, field: str) -> str:
    """Name of a field (``role``, ``content``) of one message that a model answered."""
    return f"{OUTPUT_MESSAGE_PREFIX}{index}.message.{field}"


def annotation(index: int, field: str) -> str:
    """Name of a field of one score on a carrier span (OpenInference ``spec/annotations.md``).

    The fields are ``name``, ``score``, ``label``, ``explanation``, ``annotator_kind`` and
    ``identifier``.
    """
    return f"evaluations.{index}.evaluation.{field}"


# --- claimspan: scores and what they rest on ---

SCORE_PREFIX: Final = "claimspan.score."
SCORE_HISTOGRAM: Final = "claimspan.score"
RECORDS_COUNTER: Final = "claimspan.records"
"""Counter of records by the state they ended in."""
RECORD_LAG: Final = "claimspan.record.lag"
"""Histogram of the seconds from the end of a root to the state of its record."""
QUEUE_RECORDS: Final = "claimspan.queue.records"
"""Records that have a place in the queue; summed over the monitors of the process."""
QUEUE_BYTES: Final = "claimspan.queue.size"
"""Approximate bytes that these keep alive."""
FAULTS: Final = "claimspan.faults"
"""Exceptions inside claimspan, or in code given to it, that were swallowed."""
EXPORT_FAILURES: Final = "claimspan.export.failures"
"""Spans of ours that an exporter could not deliver; with a spool they are sent again."""
RECORDS_LATE: Final = "claimspan.records.late"
"""Records counted as ``timeout`` whose scores went to a carrier afterwards."""
RECORDS_SPOOLED: Final = "claimspan.records.spooled"
"""Records that the spool has taken."""
RECORDS_RECOVERED: Final = "claimspan.records.recovered"
"""Records taken over from a process that is dead."""
SPANS_LOST: Final = "claimspan.spans.lost"
"""Spans that could not be started or ended, by a fault outside of claimspan."""
DELIVERIES_LOST: Final = "claimspan.deliveries.lost"
"""Results that a sink, ``on_result`` or the alerts could not deliver."""
EVALUATION_DURATION: Final = "claimspan.evaluation.duration"
"""Histogram of the seconds that evaluating one record took."""
EVALUATION_CALLS: Final = "claimspan.evaluation.calls"
EVALUATION_TOKENS: Final = "claimspan.evaluation.tokens"
EVALUATION_COST: Final = "claimspan.evaluation.cost"
GEN_AI_TOKEN_TYPE: Final = "gen_ai.token.type"  # noqa: S105 - a token of a model, not a password
"""Attribute of the counter of tokens: ``input`` or ``output``."""
SERVE_SPANS: Final = "claimspan.serve.spans"
"""Counter of the spans that ``claimspan serve`` has read, by what became of them."""
SERVE_REQUESTS: Final = "claimspan.serve.requests"
"""Counter of the requests that came to it, and of the spans in them that could not be read."""
SERVE_OUTCOME: Final = "claimspan.serve.outcome"
"""Attribute of both: ``joined``, ``late``, ``refused``, ..."""
JOBS_COUNTER: Final = "claimspan.jobs"
"""Counter of the jobs that a worker in another process took, by what became of them."""
JOB_RESULT: Final = "claimspan.job.result"
"""Attribute of that counter: ``evaluated``, ``duplicate``, ``again``, ``dead``, ..."""
METRIC_NAME: Final = "claimspan.metric"
"""Attribute of the histogram: which metric the score is of."""


def score(metric: str) -> str:
    """Name of the attribute that carries a metric, a double."""
    return SCORE_PREFIX + metric


def reason(criterion: str) -> str:
    """Name of the attribute with the reason that a judge gave for a criterion."""
    return REASON_PREFIX + criterion


EVENT_ALERT: Final = "claimspan.alert"
"""Log event: a mean has crossed its threshold, or has recovered."""
ALERT_NAME: Final = "claimspan.alert.name"
ALERT_STATE: Final = "claimspan.alert.state"
"""``firing`` or ``resolved``."""
ALERT_MEAN: Final = "claimspan.alert.mean"
ALERT_LOW: Final = "claimspan.alert.low"
"""Lower bound of the interval of the mean."""
ALERT_HIGH: Final = "claimspan.alert.high"
"""Upper bound of the interval of the mean."""
ALERT_THRESHOLD: Final = "claimspan.alert.threshold"
ALERT_SIDE: Final = "claimspan.alert.side"
"""``below`` or ``above``: on which side of the threshold the mean is bad."""
ALERT_RECORDS: Final = "claimspan.alert.records"
"""Number of records that the mean is of."""
ALERT_ROUTE: Final = "claimspan.alert.route"
"""Route that the alert is about; absent if it is about all."""

EVALUATION_STATUS: Final = "claimspan.evaluation.status"
EVALUATION_REASON: Final = "claimspan.evaluation.reason"
EVALUATION_SUMMARY: Final = "claimspan.evaluation.summary"
"""The main low score with its reason in plain words, and the others by name; absent if no score
is low."""
EVALUATION_LABEL: Final = "claimspan.evaluation.label"
"""``low`` if a score is low, else ``good``; ``unknown`` if no score that could be has a value: one
word, for backends that search by equality."""
EVALUATION_BLAME: Final = "claimspan.evaluation.blame"
"""The part of the pipeline that a low record comes from: ``retriever``, ``generator`` or ``both``;
``none`` of a good one, ``unknown`` if the verdicts do not tell."""
EVALUATION_FINDINGS: Final = "claimspan.evaluation.findings"
"""List of what the verdicts show, a sentence each, in numbers alone; absent if it is empty."""
EVALUATION_DOUBTS: Final = "claimspan.evaluation.doubts"
"""List of reasons why the part may be another one; absent if firm verdicts blame it."""
SCORES_LOW: Final = "claimspan.scores.low"
"""List of the metrics that are low, the most telling first; absent if none is."""
SCORES_NEUTRAL: Final = "claimspan.scores.neutral"
"""List of the metrics that are neither low nor good; absent if none is."""
SCORES_LOWER_IS_BETTER: Final = "claimspan.scores.lower_is_better"
"""List of the metrics whose lower end is better, of those that claimspan does not ship; absent if
there are none."""
REASON_PREFIX: Final = "claimspan.reason."
EVALUATION_UNDEFINED: Final = "claimspan.evaluation.undefined"
"""List of ``metric, metric: reason``, one entry a reason, for the metrics that have no value. An
entry without a colon is the reason of all metrics that are in no other entry and have no score."""
EVALUATION_UNDECIDED: Final = "claimspan.evaluation.undecided"
"""List of ``reason: verdicts``, for the verdicts that the judge could not give; absent if there
are none."""
REDACTION_FAILED: Final = "claimspan.redaction.failed"
"""Number of texts that were left out because the redactor failed on them; absent if there are
none."""
RECORD_ID: Final = "claimspan.record.id"
GROUND_TRUTH: Final = "claimspan.ground_truth"
GROUND_TRUTH_MATCHED_BY: Final = "claimspan.ground_truth.matched_by"
"""How the ground truth was found: ``id``, ``query``, ``normalised_query`` or ``callable``."""
GROUND_TRUTH_SCORE: Final = "claimspan.ground_truth.score"
"""How sure the match is, 0 to 1; absent if it is exact or the look-up does not say."""
INJECTION_SUSPECTED: Final = "claimspan.injection.suspected"
"""List of the texts that seem to address the judge: ``response``, ``chunks[0]``, ...; absent if
there are none."""
CONTEXT_SOURCE: Final = "claimspan.context.source"
"""How it is known which chunks the generator read: ``prompt``, they stand in the prompt of the
answer; ``last_documents``, the pipeline names them, or handed them on last; ``retriever``, they are
all that was retrieved. Absent if there are none."""
CHUNK_SOURCE: Final = "claimspan.chunk.source"
"""Key in a chunk's metadata: ``prompt`` if the chunk is no document that was retrieved, but a
text that the prompt has, such as what a tool returned. Absent otherwise."""
QUERY_REWRITTEN: Final = "claimspan.query.rewritten"
"""What a query rewriter or an agent asked the retriever whose chunks were read; absent if that
is the user's question."""
CONTEXT_COVERAGE: Final = "claimspan.context.coverage"
"""Share of the ground truth's facts that the chunks hold, by probability; a double."""

RESPONSE_ABSTAINED: Final = "claimspan.response.abstained"
"""True if the response declines to answer; absent if it does not."""

CLAIMS_RESPONSE: Final = "claimspan.claims.response.count"
CLAIMS_GROUND_TRUTH: Final = "claimspan.claims.ground_truth.count"
CLAIMS_UNKNOWN: Final = "claimspan.claims.unknown.count"
"""Claims with at least one verdict that the judge could not give."""
CLAIMS_CONFLICTING: Final = "claimspan.claims.conflicting.count"
"""Claims of the response that one chunk entails and another contradicts; absent if there are
none."""
CLAIMS_DROPPED: Final = "claimspan.claims.dropped.count"
"""Claims beyond the cap, which were not judged; absent if there are none."""
CLAIMS_RECORDED: Final = "claimspan.claims.recorded"
CHUNKS_COUNT: Final = "claimspan.chunks.count"
"""On a retriever, how many it returned; on the root, how many the generator read."""
CHUNKS_RECORDED: Final = "claimspan.chunks.recorded"
RUNS_DROPPED: Final = "claimspan.runs.dropped"
"""Runs beyond the bounds of one query, which are not recorded; absent if there are none."""
CHUNKS_RELEVANCE: Final = "claimspan.chunks.relevance"
"""List of doubles, one a recorded chunk: the share of the ground truth's claims that the chunk
entails. Absent if there is no ground truth, and if the judge was not asked about each of
these chunks or left a verdict open: a list of numbers cannot say that one is unknown."""
CHUNKS_USED: Final = "claimspan.chunks.used"
"""As ``claimspan.chunks.relevance``, of the response's claims."""
CHUNK_ID_SOURCE: Final = "claimspan.chunk.id_source"
"""List with one entry a recorded chunk, ``document`` or ``content_hash``; one entry in all if
it is the same for each."""

JUDGE_NAME: Final = "claimspan.judge.name"
JUDGE_VERSION: Final = "claimspan.judge.version"
JUDGE_CALLS: Final = "claimspan.judge.calls"
JUDGE_TOKENS_INPUT: Final = "claimspan.judge.tokens.input"
JUDGE_TOKENS_OUTPUT: Final = "claimspan.judge.tokens.output"
JUDGE_COST: Final = "claimspan.judge.cost_usd"
JUDGE_SECONDS: Final = "claimspan.judge.seconds"
JUDGE_SCORE_MODE: Final = "claimspan.judge.score_mode"
"""``graded`` if verdicts have probabilities, ``label`` if not, ``mixed``."""
JUDGE_NOTES: Final = "claimspan.judge.notes"
"""List of ``note: verdicts``; absent if the judge decided all of them as it usually does."""

SAMPLE_RATE: Final = "claimspan.sample.rate"
SAMPLE_WEIGHT: Final = "claimspan.sample.weight"
SAMPLE_REASON: Final = "claimspan.sample.reason"
SAMPLE_REQUEST: Final = "claimspan.sample"
"""Key in the metadata of a run, not on a span: True, False, or a rate for this one request."""

LANGFUSE_TRACE_ID: Final = "langfuse_trace_id"
"""Key of Langfuse's in the baggage, not on a span: the trace has its root already.
Langfuse's span processor would take a carrier for another root, as the first has ended before."""

CLAIM_PREFIX: Final = "claimspan.claim."
GROUND_TRUTH_CLAIM_PREFIX: Final = "claimspan.ground_truth.claim."

CLAIM_TEXT: Final = "text"
CLAIM_SENTENCE: Final = "sentence"
"""Written only if it differs from the claim's text."""
CLAIM_LABEL: Final = "label"
"""Of a response claim: against the chunks. Of a ground-truth claim: against the response."""
CLAIM_CONFIDENCE: Final = "confidence"
"""Double, 0 to 1: how sure the judge is of the label; absent if it gave only labels."""
CLAIM_ENTAILED: Final = "entailed"
"""Double: the highest probability that a chunk entails a claim of the response, or that the
response entails a claim of the ground truth. A threshold is found by labels of people on it."""
CLAIM_SUPPORTED_BY: Final = "supported_by"
"""JSON array of the ids of the chunks that entail the claim."""
CLAIM_CONTRADICTED_BY: Final = "contradicted_by"
"""JSON array of the ids of the chunks that contradict the claim."""
CLAIM_GROUND_TRUTH_LABEL: Final = "ground_truth_label"
"""Of a response claim: against the ground truth."""

CLAIM_CONTEXT_LABEL: Final = "context_label"
"""Of a response claim: against all chunks read together. Written only if it differs from the
claim's label."""


def response_claim(index: int, field: str) -> str:
    """Name of a field of one claim of the response, on the ``claimspan.evaluate`` span."""
    return f"{CLAIM_PREFIX}{index}.{field}"


def ground_truth_claim(index: int, field: str) -> str:
    """Name of a field of one claim of the ground truth, on the ``claimspan.evaluate`` span."""
    return f"{GROUND_TRUTH_CLAIM_PREFIX}{index}.{field}"
