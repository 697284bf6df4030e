"""The judges that ask a language model.

``judge`` has their settings; ``extraction``, ``checking`` and ``grading`` write prompts and read
replies. ``endpoint`` gets a reply to a prompt within its bounds. ``dialect`` has what comes next if
a server refuses a part of a request, such as ``response_format``; ``refusals`` reads what it has
said. ``chat`` is the seam to any client; ``openai_chat`` and ``litellm_chat`` stand behind it.

``judge`` is not imported here: its client takes a second.
"""

from __future__ import annotations

from claimspan.judges.llm.chat import ChatModel, ChatReply, ChatRequest

__all__ = ["ChatModel", "ChatReply", "ChatRequest"]
