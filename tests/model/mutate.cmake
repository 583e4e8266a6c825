# cmake -DIN=file -DOUT=file -DFROM=text -DTO=text -P mutate.cmake: copies with one text replaced.
# `<end>` in TO stands for a semicolon, which would split a list.
#
# Where the text is gone the copy is faithful, and the test that expects a violation of it fails:
# better than a build that fails.
string(REPLACE "<end>" ";" TO "${TO}")
file(READ "${IN}" content)
string(FIND "${content}" "${FROM}" at)
if(at EQUAL -1)
  message(WARNING "${IN} no longer contains `${FROM}`: adapt the mutant in tests/model")
else()
  string(REPLACE "${FROM}" "${TO}" content "${content}")
endif()
file(WRITE "${OUT}" "${content}")
