"""Complete configurations, as functions that one can read: `recipes.generator.small()`."""
