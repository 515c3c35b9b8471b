// Package bench is where the project's claims about speed come from. Each folder below is a command that measures
// one thing and prints it as a table or, with -json, as one JSON object; README.md says how to read the numbers.
//
// What is guaranteed: a number is printed only for a run whose result was checked, so a fast run that lost or doubled
// an event is a failure and not a number. What is not: that two machines, or the same machine an hour later, agree.
package bench
