"""Writes the merges that Hugging Face's tokenizers 0.23 learns from corpus.txt, and encodings of some texts: `python3 make.py`."""

import json
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

here = Path(__file__).parent
tokenizer = Tokenizer(models.BPE())
tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
tokenizer.decoder = decoders.ByteLevel()
trainer = trainers.BpeTrainer(
    vocab_size=400,
    min_frequency=2,
    special_tokens=["<|endoftext|>"],
    initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    show_progress=False,
)
tokenizer.train_from_iterator([(here / "corpus.txt").read_text(encoding="utf-8")], trainer)
learned = json.loads(tokenizer.to_str())["model"]
texts = ["Call me Ishmael.", "naïve café – 東京, don't 123 45!", "  two  spaces\n\n\ttab\u0085\ufeffnext ", "🦊🦊 thethethe the the"]
lines = [json.dumps(pair, ensure_ascii=False) for pair in learned["merges"]]
encoded = [{"text": text, "ids": tokenizer.encode(text).ids} for text in texts]
(here / "expected.json").write_text(
    '{"merges": [\n' + ",\n".join(lines) + '\n],\n"vocab": ' + json.dumps(learned["vocab"], ensure_ascii=False)
    + ',\n"encoded": ' + json.dumps(encoded) + "}\n",
    encoding="utf-8",
)
