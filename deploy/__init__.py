"""How the engine is deployed: chart, image, plain YAML, and what makes a release of them."""
