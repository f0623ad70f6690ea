"""The fields of Kafka's messages, one file for each topic or file that they stand in.

Written by ``make messages`` from the schemas in the released jars, and not to be edited.
`logtool.formats.messages.schema` reads them and says how a line is built.
"""
