"""The second pass without rows: whole columns are read, dealt to files, ordered and written by PyArrow; Spark schedules the tasks.

    source      which tables can be: Parquet on the disks of the one machine that Spark works on, of plain types
    deal        a task for each partition that pass 1 counted: ranks, kernel, records dealt to the files-to-be
    pieces      what such a task hands to those of the files: sealed, in a folder of its own
    gather      a task for each file: its records in their order, as columns, written
    rewriting   both in turn, and that nothing was lost
    listing     what each bucket holds: a table of no records, written by tasks in the same manner

The same records get the same numbers as by rows (`anonlib.engine.ranks`): partitions, their order and the kernel are the same, and so are
the published rows under the same key. Their order is another: by random words of a key of the run alone instead of a hash of the row.
"""
