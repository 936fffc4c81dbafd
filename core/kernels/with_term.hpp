// A rule's term as a type, for files that are compiled once per instruction set.
#pragma once

#include "rules/curvature.hpp"

#ifndef POLYLEAF_ISA
#error "POLYLEAF_ISA names the instruction set this file is compiled for"
#endif

namespace polyleaf {
namespace POLYLEAF_ISA {
namespace {

template <Term kind>
struct TermOf {
  static constexpr Term value = kind;
};

// Calls body with the term as a type.
template <class Body>
void with_term(Term term, Body&& body) {
  switch (term) {
    case Term::kItself:
      return body(TermOf<Term::kItself>());
    case Term::kSquare:
      return body(TermOf<Term::kSquare>());
    case Term::kPaper:
      return body(TermOf<Term::kPaper>());
    case Term::kTwice:
      return body(TermOf<Term::kTwice>());
    case Term::kAbsolute:
      return body(TermOf<Term::kAbsolute>());
  }
}

}  // namespace
}  // namespace POLYLEAF_ISA
}  // namespace polyleaf
