#include "answers.h"

#include "reductions.h"

namespace skein {

Completion refusal(const Command& command, Outcome outcome, const char* message) {
  Completion answer;
  answer.id = command.id;
  answer.outcome = outcome;
  answer.message = message;
  return answer;
}

void describeFailure(Completion& answer, const char* call, int code) {
  if (answer.outcome != Outcome::done) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  answer.outcome = Outcome::failed;
  answer.message = std::string(call) + ": " + std::string(text, static_cast<size_t>(length));
}

void checkArrival(Completion& answer, const Awaited& awaited, const MPI_Status& status) {
  int arrived = 0;
  MPI_Get_count(&status, MPI_BYTE, &arrived); // A part is never longer than the maximum of an int.
  if (static_cast<size_t>(arrived) == awaited.bytes && status.MPI_TAG == awaited.tag) return;
  answer.outcome = Outcome::mismatch;
  answer.values = {static_cast<double>(arrived), static_cast<double>(status.MPI_TAG), static_cast<double>(awaited.bytes),
                   static_cast<double>(awaited.tag), static_cast<double>(awaited.peer)};
}

void checkAgreement(Operation& operation) {
  if (operation.agreed[0] != ~operation.agreed[1]) operation.answer.outcome = Outcome::mismatch;
}

size_t bytesUnderWay(const Command& command) { return command.count * bytesOf(command.element); }

}  // namespace skein
