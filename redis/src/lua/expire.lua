-- Lets the key die when the server's clock will pass `at`. Counted from this moment and not from the one judged: a key whose end
-- came while the script ran would be gone before its last lines. With a time given, which need not be near the clock: in an hour.
local function expire(key, at)
  call('PEXPIRE', key, given == 1 and 3600000 or math.ceil((at - now) / 1000) + 1)
end
