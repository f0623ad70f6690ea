"""Secrets in metadata records, such as passwords and SCRAM keys, shown only on request.

Source: ``RecordRedactor``, ``BrokerSecurityConfigs`` (Kafka 4.3).
"""

import re

REDACTED = "(redacted)"
FIELDS = {
    "UserScramCredentialRecord": ("salt", "storedKey", "serverKey"),
    "DelegationTokenRecord": ("tokenId",),
    "RemoveDelegationTokenRecord": ("tokenId",),
}
"""Fields that are secret, by message."""
_CONFIG = re.compile(
    r"password|passwd|passphrase|secret|jaas|credential|token|keystore\.(key|certificate)"
    r"|truststore\.cert|(access|account|api|encryption|private)[._-]?key",
    re.IGNORECASE,
)
"""Settings whose values are not shown: those of type PASSWORD, and what plugins call so."""


def is_secret_config(name: str) -> bool:
    """Return whether the value of a setting with this name is secret."""
    return _CONFIG.search(name) is not None
