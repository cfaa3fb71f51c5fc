//! What the tests of Flagstone share: file systems that crash and fail, a model of the engine, generators.
