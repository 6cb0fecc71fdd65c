"""The theory of the lectures as numbers."""

__all__: list[str] = []
