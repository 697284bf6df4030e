"""Evaluation of the judges themselves, on claims that people have labelled.

``agreement`` reads such claims, has a judge decide them, and measures how far judge and people
agree; ``calibration`` finds the thresholds of a cascade. ``traffic`` calibrates one judge on
labelled claims of one's own traffic.
"""
