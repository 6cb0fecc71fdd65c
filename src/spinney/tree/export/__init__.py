"""Read and draw trees: text, rules, Graphviz, SVG, matplotlib."""
