//! The rules of this repository, checked as one test.
