-- Lets the key die once the server's clock passes `at`. With a time given, which need not be near the clock: in an hour.
local function expire(key, at)
  if given == 1 then call('PEXPIRE', key, 3600000) else call('PEXPIREAT', key, math.ceil(at / 1000) + 1) end
end
