# error@0 no-graph: no graph in this file (help: Write `graph
dim B in 1..8
