// SPDX-License-Identifier: Apache-2.0
// Breaks every naming rule of .clang-tidy once; never compiled. tools/checks_test.py expects one finding for each name that begins with Bad or bad.
namespace BadNamespace {

class bad_class {
 public:
  void BadMethod() {}

 private:
  int badPrivateMember = 0;
};

struct bad_struct {
  int BadMember = 0;
};

enum class bad_enum { bad_constant };

using bad_alias = int;

template <typename bad_parameter>
void good_function(bad_parameter) {}

void BadFunction(int BadArgument) {
  int BadVariable = BadArgument;
  constexpr int bad_constexpr = 1;
  static_cast<void>(BadVariable + bad_constexpr);
}

const int bad_global_constant = 1;

#define bad_macro 1

}  // namespace BadNamespace
