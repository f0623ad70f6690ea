"""The campaign of deletions: verdicts on log dirs from which something is missing.

Real brokers write log dirs (`bases`). A case removes or empties files of them (`deletions`,
`node_deletions`), the commands judge the rest (`sayings`), a broker starts on it (`observation`),
and a verdict compares both (`verdicts`). `campaign` keeps outcomes, `report` writes the report.
"""
