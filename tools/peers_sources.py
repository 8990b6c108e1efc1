"""Writes the source of every workload of bench/peers in every layout: peers_sources.py FOLDER"""

import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "bench", "peers"))

import workloads  # noqa: E402

for workload in workloads.TABLE:
    for layout in workload.layouts:
        name = "-".join(filter(None, (workload.name.replace("^", ""), layout)))
        with open(os.path.join(sys.argv[1], name + ".g"), "w") as file:
            file.write(workload.build(layout).source)
