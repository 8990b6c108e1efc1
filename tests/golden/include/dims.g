dim D = 16
