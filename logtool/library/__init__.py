"""The public Python library: `import logtool` has its names, and nothing else is stable.

reading   partitions and segments: batches and records as columns and as objects
opened    log dirs of one node: their partitions, and the engines of verify, plan, gaps, watermark
"""
