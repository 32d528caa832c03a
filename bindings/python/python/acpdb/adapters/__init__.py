"""Adapters: acpdb behind the interfaces of agent frameworks. Each needs its framework, and none of the others."""
