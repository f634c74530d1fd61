"""The codes of findings: a class for each, with its fields, sentence and help; its page is in rules.yaml."""
