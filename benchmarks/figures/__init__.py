"""The papers' figures and tables, measured here and drawn beside what the papers say of them: `python -m benchmarks.figures`.

figure     what a figure is: how it is measured, what the paper claims of it, how it looks
claims     checks of measured rows: below, falls, near, ...; pure
store      measured rows as JSON, read and written
drawing    rows as SVG
page       the verdicts as cells and a table of `docs/papers-figures.md`
registry   all figures, and why some are not drawn
gb, ip, sdr, hg, sabre ...   the figures of each paper
"""
