"""Secrets in metadata records, such as passwords and SCRAM keys, shown only on request.

Source: ``RecordRedactor`` (Kafka 4.3). `settings` knows the settings that are no secret.
"""

REDACTED = "(redacted)"
FIELDS = {
    "UserScramCredentialRecord": ("salt", "storedKey", "serverKey"),
    "DelegationTokenRecord": ("tokenId",),
    "RemoveDelegationTokenRecord": ("tokenId",),
}
"""Fields that are secret, by message."""
